#!/usr/bin/env bash
# What is given to others: the source distribution; a wheel that pip builds from it with cargo, in an empty folder; and this wheel in an empty
# virtual environment whose PATH has no compiler, where the first notebook is run from top to bottom.
# Takes python3 (3.11 or newer), cargo, and the package index that pip is set up for. With the path of a wheel only the last of the three is done.
set -eu
wheel=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
root=$PWD

skip() {
    echo "skipped: the check of the distribution needs $1"
    exit 0
}

python=${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/}python3
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 ||
    skip "Python 3.11 or newer with venv and ensurepip (Debian: python3-venv)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

if [ -z "$wheel" ]; then
    "$python" -m venv "$folder/build"
    "$folder/build/bin/python" -m pip install --quiet "$(sed -n 's/^requires = \["\(.*\)"\]$/\1/p' pyproject.toml)" ||
        skip "maturin, which could not be installed"
    "$folder/build/bin/maturin" sdist --out "$folder/dist" >/dev/null
    # Of this checkout cargo finds nothing but what it compiled before in the target folder.
    mkdir "$folder/empty"
    cd "$folder/empty"
    begin=$SECONDS
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} \
        "$folder/build/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$folder/dist" "$folder"/dist/*.tar.gz
    wheel=$(echo "$folder"/dist/*.whl)
    echo "$(basename "$wheel"): $(wc -c <"$wheel") bytes, built from the source distribution in $((SECONDS - begin)) s"
fi

cd "$folder"
"$python" -m venv clean
bare=(env -u VIRTUAL_ENV -u PYTHONPATH "PATH=$folder/clean/bin")
begin=$SECONDS
"${bare[@]}" clean/bin/python -m pip install --quiet --only-binary :all: "${wheel}[notebook]" nbclient ipykernel pytest
echo "installed without a compiler in $((SECONDS - begin)) s"
begin=$SECONDS
"${bare[@]}" clean/bin/python -m pytest --quiet --rootdir "$root" --config-file "$root/pyproject.toml" \
    "$root/python/tests/test_notebooks.py" -k "test_runs and 1-first-comparison"
echo "the first notebook: $((SECONDS - begin)) s"
