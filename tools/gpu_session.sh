#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that a machine with a GPU, hired for minutes, is for: the hardware suite, the comparison with the virtual
# GPU, compute-sanitizer, the benchmark beside PyTorch. `tools/gpu_session.sh --help` says more. The work is done in
# tools/gpu_session/, which needs Python 3.9 and nothing else.
set -euo pipefail
tools=$(cd "$(dirname "$0")" && pwd)
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$tools" exec "$python" -m gpu_session "$@"
    fi
done
echo "gpu_session.sh: blocked: no python3 of release 3.9 or later" >&2
exit 2
