#!/usr/bin/env bash
# Gives the next release its version and date: release-version.sh VERSION [YYYY-MM-DD]. Writes Cargo.toml and the lock files, CITATION.cff, and
# CHANGELOG.md, where what was unreleased becomes the section of the release. crates/cli/tests/release.rs compares them.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-} date=${2:-$(date --utc +%F)}
if ! [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ && $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]]; then
    echo "usage: release-version.sh VERSION [YYYY-MM-DD], for example: release-version.sh 1.4.0" >&2
    exit 2
fi
if grep -q "^## $version (" CHANGELOG.md; then
    echo "release-version.sh: CHANGELOG.md has a section for $version already" >&2
    exit 2
fi
sed -i "/^\[workspace.package\]/,/^\$/s/^version = .*/version = \"$version\"/" Cargo.toml
sed -i "0,/^## Unreleased\$/s//## Unreleased\n\n## $version ($date)/" CHANGELOG.md
sed -i -e "s/^version: .*/version: $version/" -e '/^date-released: /d' CITATION.cff
sed -i "/^version: /a date-released: $date" CITATION.cff
for manifest in Cargo.toml fuzz/Cargo.toml; do
    cargo update --quiet --workspace --offline --manifest-path "$manifest"
done
git diff --stat
