#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the programs that the observers are tested on. With --check: fails when a checked-in PTX file differs.
# Needs nvcc 13 (NVCC, else the one on PATH).
set -eu
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for source in *.cu; do
    name=${source%.cu}
    "$nvcc" -ptx -arch=compute_80 -O3 -lineinfo -std=c++17 -diag-suppress 177 "$source" -o "$work/$name.ptx"
    # Names of files without the folders of this machine, and no debug strings: only .loc and .file are of use.
    sed -e 's|^\(\t\.file\t[0-9]* \)".*/\([^/"]*\)"|\1"\2"|' -e '/^\t\.section\t\.debug_str/,/^\t}/d' -e '/^ *$/d' \
        -e 's|, function_name \$L__info_string[0-9]*||' -e 's|, inlined_at.*$||' "$work/$name.ptx" >"$work/$name.out"
    if [ "${1:-}" = --check ]; then
        cmp -s "$work/$name.out" "$name.ptx" || { echo "$name.ptx differs from what $source compiles to" >&2; status=1; }
    else
        cp "$work/$name.out" "$name.ptx"
    fi
done
exit $status
