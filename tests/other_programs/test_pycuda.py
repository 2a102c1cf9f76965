# SPDX-License-Identifier: Apache-2.0
"""PyCUDA on the virtual GPU: modules from a buffer of PTX, arrays, reductions, scans."""

import shutil

import numpy as np
import pytest
from bounded import Bounded
from program_run import needs

pytestmark = [needs("pycuda"), pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")]


def test_a_module_from_a_buffer_and_arrays_there_and_back(run):
    done = run("pycuda_arrays.py", "module", seed=2)
    assert (done.status, done.result, done.report["not_supported"]) == (0, True, {}), done.stderr


def test_a_scan_whose_last_part_is_not_full_reads_what_nobody_wrote(run):
    """The result is right; the kernel reads the unused rest of its shared array and drops it, which is a true finding."""
    done = run("pycuda_arrays.py", "scan", 3000, seed=2)
    assert (done.status, done.result) == (4, True), done.stderr
    found = {(finding["kind"], finding["kernel"], finding["space"]) for finding in done.report["findings"]}
    assert found == {("uninitialized read", "scan_scan_intervals", "shared")}


def test_reductions_are_right_and_rely_on_lanes_in_step(run):
    """PyCUDA's last steps exchange values inside a warp by volatile shared memory with nothing that orders the lanes,
    which the programming guide stopped promising with Volta: the finding is true. The sums of these whole numbers
    below 2^24 are exact, that of their squares is not."""
    done = run("pycuda_arrays.py", "reduction", flags=("--observe", "bounds,init,shared-races,global-races,barriers"))
    x = np.arange(3000, dtype=np.float64)
    assert done.result[:2] == [x.sum(), x.max()]
    squares = Bounded(x.reshape(1, -1)) * Bounded(x.reshape(1, -1))
    assert squares.sum(1).holds(done.result[2])
    assert {finding["kind"] for finding in done.report["findings"]} <= {"race within a warp"}
    assert done.status == (4 if done.report["findings"] else 0)
    assert all(finding["kernel"].startswith("reduce_kernel") for finding in done.report["findings"])
