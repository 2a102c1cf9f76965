# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs over the same call from C++.

    python python/benchmarks/overhead.py [--elements N] [--repeats R] [--json]

For groups of 1, 4 and 16 entries it times, on one device, `guarded_adamw_step` and `gradient_stats` as Python calls and
the same C++ calls on tensors that are already placed, in turns, and reports the median of each, their difference and
the project's budget (20 microseconds and 2 for each entry). The C++ side is timed inside of the module.
"""

import argparse
import json
import statistics
import time

import numpy as np

import gradguard
from gradguard import _core

CALL_BUDGET_US, ENTRY_BUDGET_US = 20.0, 2.0


def group(count, elements):
    rng = np.random.default_rng(count)

    def array():
        return rng.normal(size=elements).astype(np.float32)

    return [
        gradguard.AdamWEntry(array(), array(), gradguard.AdamWState(3, array(), np.square(array())))
        for _ in range(count)
    ]


def measure(count, elements, repeats, scan_only):
    """(median of Python in us, median of C++ in us): turns of one call each, so that both see the same machine."""
    device = gradguard.Device()
    entries = group(count, elements)
    gradients = [entry.gradients for entry in entries]
    native = _core.NativeCalls(entries, device, scan_only)
    python_times, native_times = [], []
    for turn in range(repeats + 20):
        begin = time.perf_counter_ns()
        if scan_only:
            result = gradguard.gradient_stats(gradients, device=device)
        else:
            result = gradguard.guarded_adamw_step(entries, device=device)
        python = time.perf_counter_ns() - begin
        del result
        direct = native.run()
        if turn >= 20:
            python_times.append(python / 1e3)
            native_times.append(direct / 1e3)
    return statistics.median(python_times), statistics.median(native_times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=64, help="of each entry [64]")
    parser.add_argument("--repeats", type=int, default=400, help="calls of each kind [400]")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for operation, scan_only in (("guarded_adamw_step", False), ("gradient_stats", True)):
        for count in (1, 4, 16):
            python, native = measure(count, options.elements, options.repeats, scan_only)
            rows.append(
                {
                    "operation": operation,
                    "entries": count,
                    "python_us": python,
                    "cpp_us": native,
                    "overhead_us": python - native,
                    "budget_us": CALL_BUDGET_US + ENTRY_BUDGET_US * count,
                }
            )
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'operation':<20} {'entries':>7} {'Python us':>10} {'C++ us':>10} {'over us':>8} {'budget us':>9}")
    for row in rows:
        print(
            f"{row['operation']:<20} {row['entries']:>7} {row['python_us']:>10.1f} {row['cpp_us']:>10.1f} "
            f"{row['overhead_us']:>8.1f} {row['budget_us']:>9.1f}"
        )


if __name__ == "__main__":
    main()
