# Sourced by the tests that open pages: the variable `browser`; ends the script where something is missing. `make test` installs
# Chromium where it can; Node and npm it does not.
browser=$(command -v chromium || command -v chromium-browser || true)
lacking=()
[ -n "$browser" ] || lacking+=(chromium)
for program in node npm; do
    command -v "$program" >/dev/null 2>&1 || lacking+=("$program")
done
if [ ${#lacking[@]} -gt 0 ]; then
    case ${#lacking[@]} in
    1) names=${lacking[0]} ;;
    2) names="${lacking[0]} and ${lacking[1]}" ;;
    *) names="${lacking[0]}, ${lacking[1]} and ${lacking[2]}" ;;
    esac
    echo "skipped: needs $names (CONTRIBUTING.md, \"Pages in a browser\")"
    exit 0
fi
