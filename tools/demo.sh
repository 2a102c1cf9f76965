#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clean clone to the main job: sets up, builds the program, and runs the recorded gradients of three real
# training runs through the compiled CUDA kernels on the virtual GPU, each result held against the exact reference.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
    -h | --help)
        echo "usage: tools/demo.sh [flags of 'gradguard step', e.g. --fmad off or --schedule-seed 7]"
        exit 0 ;;
esac
bash tools/setup.sh --without-torch
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ -x build/gradguard ] || echo "building build/gradguard (a few minutes the first time)"
{ [ -f build/build.ninja ] || cmake --preset default; } >"$log" 2>&1 \
    && cmake --build --preset default --target gradguard -j "$(nproc)" >>"$log" 2>&1 \
    || { tail -n 40 "$log" >&2; echo "demo: the build failed" >&2; exit 1; }

worst=0
for run in bf16_transformer f16_loss_scaling f32_digits; do
    echo
    echo "\$ build/gradguard step property_tests/recorded/$run/*.safetensors${*:+ $*}"
    status=0
    build/gradguard step property_tests/recorded/"$run"/*.safetensors "$@" || status=$?
    [ "$status" -le "$worst" ] || worst=$status
done
exit "$worst"
