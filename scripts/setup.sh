#!/usr/bin/env bash
# Installs the Debian packages that some tests use, where root allows it. Without them those tests say that they skip. Not every
# release has all of them: what it has is installed, the rest is named. Node and npm, which tests in a browser need, are not
# among them: releases have versions too old or far more than these (CONTRIBUTING.md, "Pages in a browser").
set -u
wanted=()
for pair in "tshark:tshark" "valgrind:valgrind" "ip:iproute2" "ethtool:ethtool" "chromium:chromium" \
    "ping:iputils-ping" "nft:nftables" "curl:curl" "tcpdump:tcpdump"; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || wanted+=("${pair#*:}")
done
# Programs for the kernel (`fleetfoot attach`): a compiler for them and what libbpf is built from.
command -v clang >/dev/null 2>&1 || wanted+=(clang)
[ -e /usr/include/bpf/bpf_helpers.h ] || wanted+=(libbpf-dev)
[ -e /usr/include/libelf.h ] || wanted+=(libelf-dev)
[ -e /usr/include/zlib.h ] || wanted+=(zlib1g-dev)
command -v pkg-config >/dev/null 2>&1 || wanted+=(pkg-config)
# The Python package (scripts/python.sh).
python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || wanted+=(python3 python3-venv)
[ ${#wanted[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: not installed, tests that use them will skip: ${wanted[*]}"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1; }
apt-get update -qq >/dev/null 2>&1
installed=() missing=()
if install "${wanted[@]}"; then
    installed=("${wanted[@]}")
else
    # A list with one unknown name fails as a whole.
    for package in "${wanted[@]}"; do
        if install "$package"; then installed+=("$package"); else missing+=("$package"); fi
    done
fi
[ ${#installed[@]} -eq 0 ] || echo "setup: installed ${installed[*]}"
[ ${#missing[@]} -eq 0 ] || echo "setup: not to be had here, tests that use them will skip: ${missing[*]}"
exit 0
