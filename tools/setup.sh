#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need: Debian 12 packages, and a Python environment in .venv, PyTorch in it.
# Run it as often as you like: when nothing is missing it takes a fraction of a second and changes nothing.
# It touches nothing but Debian's packages and .venv in this checkout.
#
# PyTorch is the second opinion of the Python suites, and large (on x86_64 a CUDA build: 5.5 GB and a minute; it works
# on the CPU). One that the distribution's Python, or the python3 on PATH if it is of the same version, can import is
# used as it is: .venv gets a link to its folder. GRADGUARD_TORCH_INDEX names another package index to install it from,
# for a small CPU build. GRADGUARD_TORCH=none leaves it out, and the suites that need it are blocked; one that is in
# .venv already stays there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    ca-certificates git
    g++ cmake ninja-build
    libboost-dev libgtest-dev librapidcheck-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev libfmt-dev
    python3 python3-venv python3-dev
)
# For tests/fuzz only: they are large.
fuzzer_packages=(clang libclang-rt-14-dev llvm)
requirements=oracle_py/requirements.txt
torch_requirements=oracle_py/requirements-torch.txt
# The distribution's Python, whatever else comes first on PATH: its version is known.
python=/usr/bin/python3

usage() {
    echo "usage: tools/setup.sh                    install the Debian packages and .venv"
    echo "       tools/setup.sh --without-torch    the same but PyTorch, as with GRADGUARD_TORCH=none"
    echo "       tools/setup.sh --fuzzers          also clang, for tests/fuzz"
    echo "       tools/setup.sh --list             name the Debian packages, install nothing"
}
fail() {
    echo "setup: $1" >&2
    exit 1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# quietly MESSAGE COMMAND...: the output is shown only when the command fails.
quietly() {
    local message=$1
    shift
    "$@" >"$log" 2>&1 </dev/null || {
        tail -n 5 "$log" | sed 's/^/    /' >&2
        fail "$message"
    }
}

missing_packages() {
    local package
    for package in "${packages[@]}"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

install_packages() {
    local os version missing
    os=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown}")
    version=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}")
    if [ "$os" != debian ] || [ "$version" != 12 ]; then
        fail "this is ${os:-unknown} $version, and the script knows Debian 12 only; install by hand what 'tools/setup.sh --list' names, then run tools/test.sh --no-setup"
    fi
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0

    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "not root and no sudo; as root: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    echo "setup: installing ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3)
    # apt-get update exits 0 when it reached nothing, unless told that any error counts.
    quietly "apt-get update failed: is there a network?" "${apt[@]}" update --error-on=any
    quietly "apt-get install failed" "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

install_venv() {
    local stamp=.venv/requirements.sha256 wanted
    wanted="$(sha256sum <"$requirements") $("$python" --version) $PWD"
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return 0
    echo "setup: making .venv from $requirements"
    rm -rf .venv
    quietly "cannot make .venv with $python" "$python" -m venv .venv
    quietly "pip could not install $requirements: is there a network?" \
        .venv/bin/python -m pip --disable-pip-version-check install --quiet --requirement "$requirements"
    # Last, so that an interrupted set-up starts again.
    echo "$wanted" >"$stamp"
}

# The folder that PYTHON imports PyTorch from; nothing when it cannot, or is of another version than .venv's.
torch_folder() {
    local wanted
    wanted=$("$python" -c 'import sys; print(*sys.version_info[:2])')
    "$1" - "$wanted" 2>/dev/null <<'PYTHON' || true
import sys
if "%d %d" % sys.version_info[:2] == sys.argv[1]:
    import torch
    print(__import__("os").path.dirname(torch.__path__[0]))
PYTHON
}

install_torch() {
    local stamp=.venv/torch.sha256 wanted folder other pth
    wanted="$(sha256sum <"$torch_requirements") ${GRADGUARD_TORCH_INDEX:-} $(cat .venv/requirements.sha256)"
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return 0
    rm -f "$stamp"
    for pth in .venv/lib/python3*/site-packages; do pth=$pth/gradguard_torch.pth; done
    rm -f "$pth"
    for other in "$python" "$(command -v python3 || true)"; do
        folder=$([ -n "$other" ] && torch_folder "$other")
        [ -n "$folder" ] && break
    done
    if [ -n "$folder" ]; then
        echo "setup: using the PyTorch in $folder"
        echo "$folder" >"$pth"
    else
        echo "setup: installing PyTorch (a large download; GRADGUARD_TORCH=none leaves it out)"
        quietly "pip could not install $torch_requirements: is there a network? GRADGUARD_TORCH=none goes on without PyTorch" \
            .venv/bin/python -m pip --disable-pip-version-check install --quiet \
            ${GRADGUARD_TORCH_INDEX:+--index-url "$GRADGUARD_TORCH_INDEX"} --requirement "$torch_requirements"
    fi
    echo "$wanted" >"$stamp"
}

torch=${GRADGUARD_TORCH:-}
case "${1:-}" in
    "") ;;
    --without-torch) torch=none ;;
    --fuzzers) packages+=("${fuzzer_packages[@]}") ;;
    --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac
[ -z "$torch" ] || [ "$torch" = none ] || fail "GRADGUARD_TORCH is '$torch'; want none, or nothing"
install_packages
[ -x "$python" ] || fail "no $python"
install_venv
[ "$torch" = none ] || install_torch
