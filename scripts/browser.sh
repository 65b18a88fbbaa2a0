# Sourced by the tests that open pages: the variable `browser`; ends the script where there is no Chromium or npm.
browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ] || ! command -v npm >/dev/null 2>&1; then
    echo "skipped: needs chromium and npm"
    exit 0
fi
