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
    "$nvcc" -w -ptx -arch=compute_80 -O3 -lineinfo -std=c++17 "$source" -o "$work/$name.ptx"
    # Names of files without the folders of this machine, and names of functions without their text, which has a hash
    # of such a folder: only .loc and .file are of use.
    sed -e 's|^\(\t\.file\t[0-9]* \)".*/\([^/"]*\)"|\1"\2"|' -e '/^ *$/d' \
        -e '/^\t\.section\t\.debug_str/,/^\t}/{/^\.b8/d;s/^\(\$L__info_string[0-9]*:\)$/\1 .b8 0/}' \
        "$work/$name.ptx" >"$work/$name.out"
    if [ "${1:-}" = --check ]; then
        cmp -s "$work/$name.out" "$name.ptx" || { echo "$name.ptx differs from what $source compiles to" >&2; status=1; }
    else
        cp "$work/$name.out" "$name.ptx"
    fi
done
exit $status
