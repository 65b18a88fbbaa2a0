#!/usr/bin/env bash
# Tries what `make dist` has made (FOLDER, by default target/dist): sums, the static program with nothing else around it, the package for Debian in
# a root of its own, manual pages, bills of materials, and the wheel, whose numbers must be those of the program.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD
dist=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/dist}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

check() {
    local what=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        head -20 "$scratch/said"
    fi
}

skip() {
    echo "skipped: $1"
}

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
name=fleetfoot-$version-x86_64-linux
cd "$scratch" || exit 1

sums() { (cd "$dist" && sha256sum --check --quiet SHA256SUMS); }
check "the sums" sums
listed() { [ "$(sed 's/^[^ ]*  //' "$dist/SHA256SUMS")" = "$(cd "$dist" && LC_ALL=C ls | grep -vx SHA256SUMS)" ]; }
check "every file has a sum" listed

# The program alone, in a root that has nothing else.
tar -xzf "$dist/$name.tar.gz"
mkdir empty
cp "$name/fleetfoot" empty/
static() { ! ldd "$name/fleetfoot" | grep -q '=>'; }
check "the program is static" static
no_places() { ! grep -aqF -e "$HOME/" -e "$root/" "$name/fleetfoot"; }
check "no folder of this machine in the program" no_places
alone=()
if [ "$(id -u)" = 0 ]; then
    alone=(env -i "$(command -v chroot)" empty)
elif unshare --map-root-user true 2>/dev/null; then
    alone=(env -i "$(command -v unshare)" --map-root-user --root=empty)
fi
compared=(compare --seeds 1 --quiet --out /out)
if [ ${#alone[@]} -gt 0 ]; then
    check "the program says its version in an empty root" "${alone[@]}" /fleetfoot --version
    check "the home line in an empty root" "${alone[@]}" /fleetfoot "${compared[@]}"
else
    skip "an empty root (no root, and no user namespaces): the program runs with an empty environment"
    check "the home line" env -i empty/fleetfoot "${compared[@]:0:4}" --out empty/out
fi
version_is() { [[ $("$@" --version) == "fleetfoot $version"* ]]; }
check "the version" version_is "$name/fleetfoot"

# Manual pages.
plain() { [ -z "$(MANWIDTH=80 LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null)" ]; }
pages=("$name"/man/*.1)
for page in "${pages[@]}"; do
    check "man reads $page without a warning" plain "$page"
done
many() { [ ${#pages[@]} -gt 15 ] && grep -q "^.TH FLEETFOOT 1 .*\"Fleetfoot $version\"" "$name/man/fleetfoot.1"; }
check "a page for each verb, with the version" many
check "bash reads its script" bash -n "$name/completions/fleetfoot.bash"

# The package for Debian: unpacked, and installed into a root that has a shell and nothing more.
deb=$dist/fleetfoot_$version-1_amd64.deb
if command -v dpkg-deb >/dev/null 2>&1; then
    dpkg-deb -x "$deb" unpacked
    check "the program of the package" cmp unpacked/usr/bin/fleetfoot "$name/fleetfoot"
    check "the package runs" unpacked/usr/bin/fleetfoot list mechanisms
    unit=$(find unpacked -name fleetfoot-router.service)
    check "the unit names the program of the package" grep -q '^ExecStart=/usr/bin/fleetfoot ' "$unit"
    if [ "$(id -u)" = 0 ] && command -v dash >/dev/null 2>&1; then
        mkdir -p throwaway/var/lib/dpkg/{info,updates} throwaway/bin throwaway/dev
        touch throwaway/var/lib/dpkg/{status,available} throwaway/dev/null
        cp "$(command -v dash)" throwaway/bin/sh
        for library in $(ldd "$(command -v dash)" | grep -o '/[^ ]*'); do
            mkdir -p "throwaway$(dirname "$library")"
            cp -L "$library" "throwaway$library"
        done
        # The root has no other package.
        check "dpkg installs it" dpkg --force-depends --root=throwaway --log=/dev/null --install "$deb"
        check "the installed program runs" chroot throwaway /usr/bin/fleetfoot --version
        check "dpkg removes it" dpkg --root=throwaway --log=/dev/null --purge fleetfoot
        gone() { [ ! -e throwaway/usr/bin/fleetfoot ]; }
        check "nothing of it stays" gone
    else
        skip "installing the package needs root"
    fi
    if command -v lintian >/dev/null 2>&1; then
        check "lintian" lintian --allow-root --fail-on error,warning "$deb"
    else
        skip "lintian is not installed"
    fi
else
    skip "the package for Debian, without dpkg-deb"
fi

# The wheel in an environment of its own; both builds must write the same bytes.
python3 -m venv environment
if environment/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: "$dist"/fleetfoot-"$version"-*.whl >pip.txt 2>&1; then
    cat >compare.py <<'END'
import sys
import fleetfoot
sys.stdout.write(fleetfoot.compare(fleetfoot.Scenario.home_line(), seeds=1).to_json())
END
    environment/bin/python compare.py >wheel.json
    check "wheel and program write the same result" cmp wheel.json empty/out/result.json
    notices() { environment/bin/python -c '
import importlib.metadata, sys
files = [str(file) for file in importlib.metadata.files("fleetfoot")]
sys.exit(not any(file.endswith("LICENSE-THIRD-PARTY") for file in files) or not any(file.endswith(".cdx.json") for file in files))'; }
    check "the wheel has the licences and the bill of materials" notices
else
    skip "the wheel: $(tail -1 pip.txt)"
fi

# Bills of materials: every library has a licence, and whatever is needed is listed.
complete() { python3 - "$@" <<'END'
import json, sys
for path in sys.argv[1:]:
    bom = json.load(open(path))
    listed = {part["bom-ref"] for part in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
    assert bom["bomFormat"] == "CycloneDX" and len(listed) > 50, path
    assert all(part["licenses"][0]["expression"] for part in bom["components"]), path
    assert all(need in listed for row in bom["dependencies"] for need in row["dependsOn"]), path
    assert {row["ref"] for row in bom["dependencies"]} == listed, path
END
}
check "the bills of materials" complete "$dist"/*.cdx.json
named() {
    python3 - "$dist/fleetfoot-$version-program.cdx.json" "$name/LICENSE-THIRD-PARTY" <<'END'
import json, sys
lines = set(open(sys.argv[2]).read().splitlines())
for part in json.load(open(sys.argv[1]))["components"]:
    row = f"{part['name']} {part['version']} ({part['licenses'][0]['expression']})"
    assert row in lines or part["name"].startswith("fleetfoot-"), row
END
}
check "the licence of every library" named

echo "distribution: $passed passed, $failed failed"
[ "$failed" = 0 ]
