#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything and runs every test; exits 0 only when at least one test ran, none failed, and the tests that were
# blocked are exactly those that tools/expected_blocked.txt expects on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: tools/test.sh [--shard I/N] [--nightly] [--no-setup] [--jobs J]

  --shard I/N   run the I-th of N parts of the tests (1 <= I <= N); the parts together are all of them
  --nightly     also what takes longer: tests labelled nightly or gigabytes, everything but the latter again under the
                address and undefined-behaviour sanitizers, clang-format and clang-tidy; writes tests/nightly/last.json
                (those that take gigabytes of memory, alone: ctest --test-dir build -L gigabytes)
                and runs the Python suites with the oldest and newest NumPy and PyTorch (tools/python_matrix.py)
  --no-setup    do not run tools/setup.sh first (compiler, libraries and .venv are there already)
                GRADGUARD_TORCH=none leaves PyTorch out, and the tests that need it are blocked (tools/setup.sh)
  --jobs J      tests and compilers at a time (all processors)

Results as JUnit XML: build/test-results/
TEXT
}
die() { echo "test.sh: $1" >&2; exit 2; }

shard=1 shards=1 nightly=no setup=yes jobs=$(nproc)
while [ $# -gt 0 ]; do
    case "$1" in
        --shard)
            [[ "${2:-}" =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || die "--shard wants I/N, got '${2:-}'"
            shard=${BASH_REMATCH[1]} shards=${BASH_REMATCH[2]}
            [ "$shard" -le "$shards" ] || die "--shard $2: no such part"
            shift ;;
        --nightly) nightly=yes ;;
        --no-setup) setup=no ;;
        --jobs)
            [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || die "--jobs wants a number, got '${2:-}'"
            jobs=$2
            shift ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; die "unknown argument '$1'" ;;
    esac
    shift
done

results=$PWD/build/test-results
started=$SECONDS
timing=""
stage() { echo "== $1"; started=$SECONDS; }
finished() {
    timing="$timing $1 $((SECONDS - started)) s,"
    echo "== $1: $((SECONDS - started)) s"
}

# build PRESET: the compiler's output is shown only when it fails.
build() {
    local preset=$1 log
    log=$(mktemp)
    cmake --preset "$preset" >"$log" 2>&1 && cmake --build --preset "$preset" -j "$jobs" >>"$log" 2>&1 || {
        grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" | tail -n 60 >&2
        rm -f "$log"
        echo "test.sh: the build of preset $preset failed" >&2
        exit 1
    }
    rm -f "$log"
}

failed=0
# run_ctest FOLDER NAME [ctest arguments]: every C++ and script test of this part; passing tests are not listed.
run_ctest() {
    local folder=$1 name=$2
    local arguments=(--test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error --timeout 600
        --output-junit "$results/$name.xml" -I "$shard,,$shards")
    shift 2
    arguments+=("$@")
    [ "$nightly" = yes ] || arguments+=(-LE 'nightly|gigabytes')
    if [ -t 1 ]; then
        ctest "${arguments[@]}" --progress || failed=1
    else
        ctest "${arguments[@]}" 2>&1 | { grep -vE '^ *Start +[0-9]+:|Passed +[0-9.]+ sec$' || true; } || failed=1
    fi
}

run_pytest() {
    local files=() index=0 file
    for file in oracle_py/tests/test_*.py python/tests/test_*.py; do
        [ $((index++ % shards)) -ne $((shard - 1)) ] || files+=("$file")
    done
    if [ ${#files[@]} = 0 ]; then
        echo "no Python test file in part $shard of $shards"
        return 0
    fi
    GRADGUARD_BINARY=$PWD/build/gradguard GRADGUARD_PYTHON_PATH=$PWD/build/python .venv/bin/python -m pytest -q -rs -p no:cacheprovider \
        --junitxml "$results/pytest.xml" "${files[@]}" || failed=1
}

if [ "$setup" = yes ]; then
    stage "set-up"; bash tools/setup.sh; finished set-up
fi
rm -rf "$results" && mkdir -p "$results"
stage "build"; build default; finished build
stage "C++ and script tests"; run_ctest build ctest; finished ctest
stage "Python tests"; run_pytest; finished pytest

verdict=(--shards "$shards")
if [ "$nightly" = yes ]; then
    stage "sanitizers"; build asan; run_ctest build-asan ctest-asan -LE 'tools|gigabytes'; finished sanitizers
    if [ "${GRADGUARD_TORCH:-}" != none ]; then
        stage "Python versions"; /usr/bin/python3 tools/python_matrix.py || failed=1; finished python-versions
    fi
    verdict+=(--complete --write tests/nightly/last.json)
fi
echo "== result (${timing# }${timing:+ }all $SECONDS s)"
/usr/bin/python3 tools/test_results.py "${verdict[@]}" "$results"/*.xml || failed=1
exit $failed
