#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles tests/programs/{cub,miscompiled,own}/*.cu to PTX with nvcc 13 at several levels. --check: only says which checked-in
# PTX is not what this nvcc makes. Exit 0: all the same; 1: some differ; 2: blocked (no nvcc, or another release).
set -euo pipefail
cd "$(dirname "$0")"

check=no
case "${1:-}" in
    "") ;;
    --check) check=yes ;;
    *) echo "usage: tests/programs/compile.sh [--check]" >&2; exit 64 ;;
esac
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo "blocked: no nvcc"; exit 2; }
release=$("$nvcc" --version | sed -n 's/.*\(release [^,]*, V[0-9.]*\).*/\1/p')
record=cub/compiler.txt
if [ "$check" = yes ] && [ "$(cat "$record")" != "nvcc, $release" ]; then
    echo "blocked: nvcc, $release here, the record is of $(cat "$record")"
    exit 2
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
different=0
for source in cub/*.cu miscompiled/*.cu own/*.cu; do
    name=$(basename "$source" .cu)
    levels="O0 O3"
    [[ "$source" != own/* ]] || levels="O0 O1 O2 O3"
    for level in $levels; do
        kept="${source%.cu}.$level.ptx"
        ptx="$folder/$name.$level.ptx"
        "$nvcc" -ptx -arch=compute_80 -std=c++20 -Xcicc "-$level" "$source" -o "$ptx"
        # nvcc puts hashes of paths into internal names.
        sed -E -i -e 's/[ \t]*$//' -e "s/(_INTERNAL_|GLOBAL__N__)[0-9a-f]{8}(_[0-9]+_${name}_cu_)[0-9a-f]{8}/\\100000000\\200000000/g" "$ptx"
        if [ "$check" = no ]; then
            cp "$ptx" "$kept"
        elif ! cmp -s "$ptx" "$kept"; then
            echo "tests/programs/$kept is not what nvcc makes of $source"
            different=1
        fi
    done
done
[ "$check" = yes ] || echo "nvcc, $release" >"$record"
exit "$different"
