#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything and runs every test; exits 0 only when at least one test ran, none failed, and the tests that were
# blocked are exactly those that tools/expected_blocked.txt expects on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: tools/test.sh [--shard I/N] [--nightly[=STAGE,...]] [--no-setup] [--jobs J]

  --shard I/N   run the I-th of N parts of the tests (1 <= I <= N); the parts together are all of them
  --nightly     also what takes longer, in stages, or only those that are named:
                  tests     all tests, those labelled nightly or gigabytes and clang-format and clang-tidy included
                            (those that take gigabytes of memory, alone: ctest --test-dir build -L gigabytes)
                  fuzz      the fuzzers of tests/fuzz, a minute for each; wants clang, which set-up installs then
                  asan      the C++ tests under the address and undefined-behaviour sanitizers
                  tsan      the C++ tests but the longest under the thread sanitizer
                  python    the Python suites with the oldest and newest NumPy and PyTorch (tools/python_matrix.py)
                  mutation  takes over what the last mutation run left in property_tests/mutation/results.json
                Each leaves its result, date, duration and the hash of its sources in tests/nightly/last.json;
                tools/nightly.py says what is in there.
  --no-setup    do not run tools/setup.sh first (compiler, libraries and .venv are there already)
                GRADGUARD_TORCH=none leaves PyTorch out, and the tests that need it are blocked (tools/setup.sh)
  --jobs J      tests and compilers at a time (all processors)

Results as JUnit XML: build/test-results/
TEXT
}
die() { echo "test.sh: $1" >&2; exit 2; }

all_stages=(tests fuzz asan tsan python mutation)
shard=1 shards=1 nightly=no setup=yes jobs=$(nproc) stages=(tests)
while [ $# -gt 0 ]; do
    case "$1" in
        --shard)
            [[ "${2:-}" =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || die "--shard wants I/N, got '${2:-}'"
            shard=${BASH_REMATCH[1]} shards=${BASH_REMATCH[2]}
            [ "$shard" -le "$shards" ] || die "--shard $2: no such part"
            shift ;;
        --nightly) nightly=yes stages=("${all_stages[@]}") ;;
        --nightly=*)
            nightly=yes
            IFS=, read -ra stages <<<"${1#--nightly=}"
            for stage in "${stages[@]}"; do
                [[ " ${all_stages[*]} " = *" $stage "* ]] || die "--nightly: no stage is called '$stage'; want ${all_stages[*]}"
            done
            [ ${#stages[@]} -gt 0 ] || die "--nightly= names no stage" ;;
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
    for file in oracle_py/tests/test_*.py python/tests/test_*.py tests/other_programs/test_*.py; do
        [ $((index++ % shards)) -ne $((shard - 1)) ] || files+=("$file")
    done
    if [ ${#files[@]} = 0 ]; then
        echo "no Python test file in part $shard of $shards"
        return 0
    fi
    GRADGUARD_BINARY=$PWD/build/gradguard GRADGUARD_PYTHON_PATH=$PWD/build/python .venv/bin/python -m pytest -q -rs -p no:cacheprovider \
        --junitxml "$results/pytest.xml" "${files[@]}" || failed=1
}

# judge STAGE [arguments of tools/test_results.py] FILE...: the verdict on a stage's tests; recorded where it is nightly.
judge() {
    local stage=$1 record=()
    shift
    [ "$nightly" = no ] || record=(--stage "$stage" --seconds $((SECONDS - started)))
    [ "$nightly" = no ] || [ "$shards" = 1 ] || record+=(--left-out "all parts but $shard/$shards")
    /usr/bin/python3 tools/test_results.py --shards "$shards" "${record[@]}" "$@" || failed=1
}

run_tests() {
    stage "build"; build default; finished build
    stage "C++ and script tests"; run_ctest build ctest; finished ctest
    local begun=$started
    stage "Python tests"; run_pytest; finished pytest
    started=$begun
    local complete=()
    [ "$nightly" = no ] || complete=(--complete)
    judge tests "${complete[@]}" "$results"/*.xml
}

# run_sanitizer NAME SKIPPED: SKIPPED are labels.
run_sanitizer() {
    stage "$1"; build "$1"; run_ctest "build-$1" "ctest-$1" -LE "$2"; finished "$1"
    judge "$1" "$results/ctest-$1.xml"
}

run_fuzzers() {
    if ! command -v clang++ >/dev/null; then
        echo "blocked: the fuzzers: no clang++"
        return 0
    fi
    stage "fuzzers"; build fuzz
    started=$SECONDS
    /usr/bin/python3 tests/fuzz/run.py --jobs "$jobs" --write "$results/fuzz.json" || failed=1
    finished fuzzers
    /usr/bin/python3 tools/nightly.py --add fuzz --from "$results/fuzz.json" --seconds $((SECONDS - started)) --compiler clang++
}

run_python_matrix() {
    [ "${GRADGUARD_TORCH:-}" != none ] || return 0
    stage "Python versions"; build default
    started=$SECONDS
    local status=0
    /usr/bin/python3 tools/python_matrix.py --write "$results/python.json" || status=$?
    finished python-versions
    [ $status != 2 ] || return 0  # blocked
    [ $status = 0 ] || failed=1
    /usr/bin/python3 tools/nightly.py --add python --from "$results/python.json" --seconds $((SECONDS - started))
}

if [ "$setup" = yes ]; then
    options=()
    [[ " ${stages[*]} " != *" fuzz "* ]] || options=(--fuzzers)
    stage "set-up"; bash tools/setup.sh "${options[@]}"; finished set-up
fi
rm -rf "$results" && mkdir -p "$results"
for stage in "${stages[@]}"; do
    case "$stage" in
        tests) run_tests ;;
        fuzz) run_fuzzers ;;
        asan) run_sanitizer asan 'tools|gigabytes' ;;
        tsan) run_sanitizer tsan 'tools|gigabytes|nightly' ;;
        python) run_python_matrix ;;
        mutation) /usr/bin/python3 tools/nightly.py --mutation ;;
    esac
done
echo "== result: $([ $failed = 0 ] && echo good || echo NOT good) (${timing# }${timing:+ }all $SECONDS s)"
exit $failed
