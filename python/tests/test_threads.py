# SPDX-License-Identifier: Apache-2.0
"""Calls from several threads take turns on a device, and run without the interpreter's lock."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")

from groups import entry, same_bits  # noqa: E402


def test_threads_share_a_device():
    device = gradguard.Device(observers="all")
    groups = [[entry(np.random.default_rng(seed), (20, 30), step=2)] for seed in range(8)]
    alone = [gradguard.guarded_adamw_step(one, device=device).entries[0].parameters for one in groups]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            together = list(pool.map(lambda one: gradguard.guarded_adamw_step(one, device=device), groups))
            assert all(same_bits(got.entries[0].parameters, want) for got, want in zip(together, alone, strict=True))
    del together, alone
    assert device.findings(final=True) == []
    assert device.live_allocations == 0


def test_other_threads_run_while_a_device_works():
    gradients, times, stamps = [np.ones(1 << 21, np.float32)], [], []

    def work():
        times.append(time.perf_counter())
        gradguard.gradient_stats(gradients)
        times.append(time.perf_counter())

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        stamps.append(time.perf_counter())
    begin, end = times
    quarter = (end - begin) / 4
    assert any(begin + quarter < stamp < end - quarter for stamp in stamps)


def test_a_check_may_run_beside_a_step():
    def subject(case):
        if case.operation == "statistics":
            return gradguard.gradient_stats([one.gradients for one in case.entries], case.control.gradient_scale)
        return NotImplemented

    with ThreadPoolExecutor(2) as pool:
        checks = list(pool.map(lambda seed: gradguard.check(subject, cases=30, seed=seed, only="statistics"), range(2)))
    assert all(result.ok for result in checks)
