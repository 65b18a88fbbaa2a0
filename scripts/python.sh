#!/usr/bin/env bash
# The Python package: builds its wheel from the libraries that the tests have compiled, installs it into a virtual
# environment and runs python/tests. Takes the active environment (VIRTUAL_ENV), else makes .venv.
# Arguments go to pytest; FLEETFOOT_LONG=1 runs the slow tests too.
set -u
cd "$(dirname "$0")/.." || exit 1

skip() {
    echo "skipped: the Python package needs $1"
    exit 0
}

python=""
for candidate in ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python"} python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$(command -v "$candidate")
        break
    fi
done
[ -n "$python" ] || skip "Python 3.11 or newer"
if [ -z "${VIRTUAL_ENV:-}" ]; then
    if [ ! -x .venv/bin/python ]; then
        "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || skip "the modules venv and ensurepip (Debian: python3-venv)"
        "$python" -m venv .venv || exit 1
    fi
    VIRTUAL_ENV=$PWD/.venv
fi
export VIRTUAL_ENV PATH="$VIRTUAL_ENV/bin:$PATH"
lock=python/requirements-test.txt
stamp=$VIRTUAL_ENV/fleetfoot-requirements.txt
if ! cmp -s "$lock" "$stamp"; then
    if ! python -m pip install --quiet --disable-pip-version-check --requirement "$lock"; then
        skip "the packages of $lock, which could not be installed"
    fi
    cp "$lock" "$stamp"
fi

wheels=${CARGO_TARGET_DIR:-target}/wheels
rm -f "$wheels"/fleetfoot-*.whl
profile=${FLEETFOOT_PROFILE:-ci}
# Of the profile of the tests: with the features of the workspace, so that its libraries are compiled already. Such a wheel may need
# libraries of this machine and is for this machine only; others are built with `maturin build --profile shipped`.
options=(--profile "$profile")
if [ "$profile" = ci ]; then
    features=parquet,quic,as-tested
    if scripts/has-bpf.sh; then features+=,fleetfoot-live/bpf; fi
    options+=(--features "$features" --auditwheel skip)
fi
CARGO_INCREMENTAL=0 maturin build "${options[@]}" --locked --quiet --interpreter python --out "$wheels" || exit 1
python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/fleetfoot-*.whl || exit 1
FLEETFOOT_WHEEL=$(echo "$wheels"/fleetfoot-*.whl)
export FLEETFOOT_WHEEL
ruff format --check python docs/site || exit 1
ruff check python docs/site || exit 1
mypy || exit 1
exec python -m pytest ${FLEETFOOT_LONG:+--slow} "$@"
