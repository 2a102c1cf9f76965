#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need: Debian 12 packages, and a Python environment in .venv.
# Run it as often as you like: when nothing is missing it takes a fraction of a second and changes nothing.
# It touches nothing but Debian's packages and .venv in this checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    ca-certificates git
    g++ cmake ninja-build
    libboost-dev libgtest-dev librapidcheck-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev libfmt-dev
    python3 python3-venv
)
requirements=oracle_py/requirements.txt
# The distribution's Python, whatever else comes first on PATH: its version is known.
python=/usr/bin/python3

usage() {
    echo "usage: tools/setup.sh            install the Debian packages and .venv"
    echo "       tools/setup.sh --list     name the Debian packages, install nothing"
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

case "${1:-}" in
    "") ;;
    --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac
install_packages
[ -x "$python" ] || fail "no $python"
install_venv
