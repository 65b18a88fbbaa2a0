#!/usr/bin/env bash
# Whether programs for the kernel can be compiled here (cargo feature `bpf`); else says what is missing.
set -u
missing=()
clang=${CLANG:-}
for name in "$clang" clang clang-{22..14}; do
    [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 && { clang=$name; break; }
done
command -v "${clang:-clang}" >/dev/null 2>&1 || missing+=(clang)
[ -e /usr/include/bpf/bpf_helpers.h ] || missing+=(libbpf-dev)
[ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
[ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
command -v pkg-config >/dev/null 2>&1 || missing+=(pkg-config)
command -v make >/dev/null 2>&1 || missing+=(make)
[ ${#missing[@]} -eq 0 ] && exit 0
echo "the feature bpf needs the Debian packages: ${missing[*]}"
exit 1
