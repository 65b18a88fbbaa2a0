#!/usr/bin/env bash
# The files of a release, made of the commit that is checked out: target/dist. docs/releasing.md says what is in each.
# --twice builds everything a second time, in another folder and from nothing, and compares the two byte by byte.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
twice=
case "${1:-}" in
    "") ;;
    --twice) twice=1 ;;
    *) echo "dist.sh: $1? --twice" >&2; exit 2 ;;
esac
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
work=$target/dist-work
dist=$target/dist
static=x86_64-unknown-linux-musl
dynamic=x86_64-unknown-linux-gnu
# `bpf` needs libelf, for which there is no static library with musl.
features=parquet,quic,serve,xdp
cargo_deb=3.8.0

missing=()
[ "$(uname -sm)" = "Linux x86_64" ] || missing+=("Linux on x86-64")
python=python3
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 ||
    missing+=("Python 3.11 or newer with venv and ensurepip (Debian: python3-venv)")
for pair in "git:git" "musl-gcc:musl-tools" "dpkg-deb:dpkg" "strip:binutils" "gzip:gzip" "man:man-db"; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair%%:*} (Debian: ${pair#*:})")
done
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$static" ]; then
    rustup target add $static >/dev/null 2>&1 || missing+=("the compiler's library for $static (rustup target add $static)")
fi
if [ ${#missing[@]} -gt 0 ]; then
    printf 'make dist needs %s\n' "${missing[@]}" >&2
    exit 3
fi

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
commit=$(git rev-parse HEAD)
tags=$(git tag --points-at HEAD --list 'v*')
if [ -n "$tags" ] && ! grep -qx "v$version" <<<"$tags"; then
    echo "make dist: the commit has the tag $tags, and the version in Cargo.toml is $version" >&2
    exit 1
fi
[ -n "$tags" ] || echo "make dist: no release, since the commit has no tag v$version"
git diff --quiet HEAD || echo "make dist: changes that are not committed are left out"

mkdir -p "$work"
venv=$work/venv
maturin=$(sed -n 's/^maturin==//p' python/requirements-test.txt)
if [ "$("$venv/bin/maturin" --version 2>/dev/null)" != "maturin $maturin" ]; then
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "maturin==$maturin"
fi
if [ "$(cargo-deb --version 2>/dev/null)" != $cargo_deb ]; then
    cargo install --quiet --locked --debug cargo-deb@$cargo_deb
fi

# Everything that a build could take from the machine and that would get into its files: time, names of folders, language, permissions.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8 CARGO_INCREMENTAL=0
export CC_x86_64_unknown_linux_musl=musl-gcc
unset RUSTFLAGS CARGO_BUILD_TARGET VIRTUAL_ENV
umask 022

# pack FOLDER NAME ARCHIVE: NAME in FOLDER as a compressed archive.
pack() {
    tar --create --directory "$1" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rwX,go+rX,go-w "$2" | gzip -9n >"$3"
}

# build PLACE: clones the commit into PLACE/source, compiles into PLACE/target and writes the files to PLACE/files.
build() {
    local place=$1 source=$1/source out=$1/files
    export CARGO_TARGET_DIR=$place/target
    rm -rf "$out"
    mkdir -p "$out"
    # A clone of before is brought up to date: cargo compiles again what has other times.
    [ -d "$source/.git" ] || git clone --quiet "$root" "$source"
    git -C "$source" fetch --quiet origin HEAD
    git -C "$source" checkout --quiet --force "$commit"
    git -C "$source" clean --quiet -ffdx
    cd "$source"
    cargo fetch --quiet --locked
    local folder maps=("$source=/fleetfoot" "$CARGO_TARGET_DIR=/target")
    maps+=("$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')")
    for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do maps+=("$folder=/crates"); done
    # Separated as cargo wants it, and quoted for the C compiler: names of folders may have spaces.
    CARGO_ENCODED_RUSTFLAGS=$(printf '\x1f--remap-path-prefix=%s' "${maps[@]}")
    CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS:1}
    CFLAGS=$(printf ' "-ffile-prefix-map=%s"' "${maps[@]}")
    export CARGO_ENCODED_RUSTFLAGS CFLAGS CC_SHELL_ESCAPED_FLAGS=1

    echo "== program"
    cargo build --quiet --profile shipped --locked --target $static --package fleetfoot-cli --features $features
    local program=$source/dist-files/fleetfoot
    mkdir -p dist-files
    strip --strip-all --remove-section=.comment -o "$program" "$CARGO_TARGET_DIR/$static/shipped/fleetfoot"
    program_files "$program" "$source/dist-files"
    "$python" scripts/sbom.py fleetfoot-cli $features $static "$out/fleetfoot-$version-program.cdx.json" dist-files/LICENSE-THIRD-PARTY
    archives "$program" "$out"

    echo "== package for Debian"
    debian_files
    cargo-deb --quiet --package fleetfoot-cli --no-build --no-strip --target $static --output "$out/fleetfoot_$version-1_amd64.deb"

    echo "== Python package"
    "$venv/bin/maturin" sdist --out "$out" >"$work/sdist.log" 2>&1 || { cat "$work/sdist.log" >&2; exit 1; }
    "$python" scripts/sbom.py fleetfoot-python parquet,quic $dynamic "$out/fleetfoot-$version-wheel.cdx.json" LICENSE-THIRD-PARTY
    "$venv/bin/maturin" build --quiet --profile shipped --locked --target $dynamic --interpreter "$python" \
        --sbom-include "$out/fleetfoot-$version-wheel.cdx.json" --out "$out"

    echo "== site"
    mkdir -p "$CARGO_TARGET_DIR/site"
    # The packages that write the pages are the same for a second build.
    [ -e "$CARGO_TARGET_DIR/site/venv" ] || [ ! -d "$work/target/site/venv" ] || ln -s "$work/target/site/venv" "$CARGO_TARGET_DIR/site/venv"
    rm -rf "$CARGO_TARGET_DIR/site/html" "$CARGO_TARGET_DIR/site/doctrees"
    FLEETFOOT_PROGRAM=$program scripts/site.sh
    [ -f "$CARGO_TARGET_DIR/site/html/index.html" ] || exit 1
    rm -rf "dist-files/fleetfoot-$version-site"
    cp -r "$CARGO_TARGET_DIR/site/html" "dist-files/fleetfoot-$version-site"
    rm -f "dist-files/fleetfoot-$version-site/.buildinfo"
    pack dist-files "fleetfoot-$version-site" "$out/fleetfoot-$version-site.tar.gz"

    git archive --format=tar --prefix="fleetfoot-$version/" HEAD | gzip -9n >"$out/fleetfoot-$version-source.tar.gz"
    (cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
    cd "$root"
}

# program_files PROGRAM FOLDER: manual pages and scripts for shells, as the program prints them.
program_files() {
    local program=$1 folder=$2 verb
    mkdir -p "$folder/man" "$folder/completions"
    "$program" completions man >"$folder/man/fleetfoot.1"
    for verb in $(sed -n 's/^fleetfoot\\-\(.*\)(1)$/\1/p' "$folder/man/fleetfoot.1"); do
        "$program" completions man "$verb" >"$folder/man/fleetfoot-$verb.1"
    done
    "$program" completions bash >"$folder/completions/fleetfoot.bash"
    "$program" completions zsh >"$folder/completions/_fleetfoot"
    "$program" completions fish >"$folder/completions/fleetfoot.fish"
    "$program" completions elvish >"$folder/completions/fleetfoot.elv"
    "$program" completions powershell >"$folder/completions/fleetfoot.ps1"
}

# archives PROGRAM OUT: the program with all that belongs to it; manual pages and scripts for shells alone.
archives() {
    local name=fleetfoot-$version-x86_64-linux
    mkdir "dist-files/$name"
    cp -r "$1" README.md CHANGELOG.md CITATION.cff LICENSE-* dist-files/LICENSE-THIRD-PARTY dist-files/man dist-files/completions "dist-files/$name"
    mkdir "dist-files/$name/contrib"
    cp contrib/*.service "dist-files/$name/contrib"
    mkdir "dist-files/$name/examples"
    cp examples/*.toml examples/*.sh "dist-files/$name/examples"
    pack dist-files "$name" "$2/$name.tar.gz"
    local part
    for part in man completions; do
        cp -r dist-files/$part "dist-files/fleetfoot-$version-$part"
        pack dist-files "fleetfoot-$version-$part" "$2/fleetfoot-$version-$part.tar.gz"
    done
}

# What only the package for Debian has.
debian_files() {
    mkdir -p dist-files/debian dist-files/systemd
    # The text of the licence, indented as this format wants it, an empty line as a dot.
    sed '1,2d; s/^$/./; s/^/ /' LICENSE-MIT >dist-files/debian/mit
    sed -e '/^@MIT@$/{r dist-files/debian/mit' -e 'd}' contrib/debian/copyright >dist-files/debian/copyright
    gzip -9nc dist-files/LICENSE-THIRD-PARTY >dist-files/debian/LICENSE-THIRD-PARTY.gz
    gzip -9nc CHANGELOG.md >dist-files/debian/changelog.gz
    cp contrib/debian/lintian dist-files/debian/lintian
    # Installed, it needs no words on how to install it.
    sed -e 's#/usr/local/bin/#/usr/bin/#' -e 's#; see docs/router.md#; see fleetfoot-router(1)#' -e '/^#   cp contrib/d' \
        -e '/^# The program belongs/d' contrib/fleetfoot-router.service >dist-files/systemd/fleetfoot-router.service
    cat >dist-files/changelog <<END
fleetfoot ($version-1) unstable; urgency=medium

  * Version $version; what has changed is in changelog.gz.

 -- The Fleetfoot authors <fleetfoot@localhost>  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
}

begin=$SECONDS
build "$work"
rm -rf "$dist"
cp -r "$work/files" "$dist"
echo "built in $((SECONDS - begin)) s"
"$root/scripts/dist-test.sh" "$dist"
if [ -n "$twice" ]; then
    begin=$SECONDS
    second=$(mktemp -d "${TMPDIR:-/tmp}/fleetfoot-second.XXXXXX")
    trap 'rm -rf "$second"' EXIT
    mkdir -p "$second/deeper"
    build "$second/deeper"
    echo "built a second time in $((SECONDS - begin)) s"
    if ! diff "$dist/SHA256SUMS" "$second/deeper/files/SHA256SUMS"; then
        mkdir -p "$work/second"
        cp "$second"/deeper/files/* "$work/second"
        echo "make dist: the two builds differ; the files of the second are in $work/second" >&2
        exit 1
    fi
    echo "both builds have the same bytes"
fi
ls -l "$dist"
