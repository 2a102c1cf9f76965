# SPDX-License-Identifier: Apache-2.0
"""tinygrad's CUDA device on the virtual GPU: a network trained with both of its compilers that produce PTX."""

import os
import shutil
import subprocess
import sys

import pytest
from program_run import HERE, needs, needs_nvrtc
from network import bounded_losses

pytestmark = needs("tinygrad")
COMPILERS = [pytest.param("CUDA:CUDA", marks=needs_nvrtc, id="nvrtc"), pytest.param("CUDA:PTX", id="ptx")]


def train(run, compiler, *arguments, **options):
    return run("tinygrad_network.py", "CUDA", *arguments, environment={"DEV": compiler}, **options)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_losses_lie_within_the_computed_bound(run, compiler):
    bounds = bounded_losses()
    for seed in (0, 5):
        done = train(run, compiler, "sgd", seed=seed)
        assert done.status == 0, done.stderr
        assert done.report["findings"] == []
        assert all(bound.holds(loss) for bound, loss in zip(bounds, done.result, strict=True)), done.result


@pytest.mark.parametrize("compiler", COMPILERS)
def test_adamw_under_the_jit_trains_without_a_finding(run, compiler):
    done = train(run, compiler, "adamw", "jit", seed=3)
    assert done.status == 0, done.stderr
    assert done.report["findings"] == [] and done.report["not_supported"] == {}
    assert done.result[-1] < done.result[0]


@pytest.mark.skipif(shutil.which("clang") is None, reason="tinygrad's CPU device needs clang")
def test_the_cpu_device_lies_within_the_same_bound(tmp_path):
    environment = {**os.environ, "DEV": "CPU", "CACHEDB": str(tmp_path / "cache.db")}
    script = HERE / "programs/tinygrad_network.py"
    done = subprocess.run([sys.executable, str(script), "CPU", "sgd"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    losses = [float(text) for text in done.stdout.strip(" []\n").split(",")]
    assert all(bound.holds(loss) for bound, loss in zip(bounded_losses(), losses, strict=True)), losses


def test_the_bound_is_narrow_and_catches_a_wrong_rate():
    bounds = bounded_losses()
    assert max(float(bound.error.max() / abs(bound.value.max())) for bound in bounds) < 2**-10
    assert not bounds[1].holds(bounds[1].value * (1 + 2**-10))


def own_kernel(run, variant, **options):
    return run("tinygrad_kernel.py", variant, environment={"DEV": "CUDA:CUDA"}, **options)


@needs_nvrtc
def test_a_right_kernel_of_the_user_is_clean(run):
    done = own_kernel(run, "right", flags=("--count",))
    assert (done.status, done.report["findings"]) == (0, []), done.stderr
    assert done.result == [sum(range(1, 65)), sum(range(65, 101))]
    assert done.kernels()["block_sums"]["launches"] == 1 and done.kernels()["block_sums"]["instructions"]


@needs_nvrtc
def test_a_dropped_barrier_is_a_race_with_kernel_and_line(run):
    done = own_kernel(run, "no_barrier")
    assert done.status == 4
    races = [finding for finding in done.report["findings"] if "race" in finding["kind"]]
    assert races and all(finding["kernel"] == "block_sums" for finding in races)
    assert {finding["source_line"] for finding in races} <= {5, 8}  # where the array is filled, and its halves added
    assert "finding: race" in done.stderr and "kernel block_sums" in done.stderr


@needs_nvrtc
def test_an_unguarded_index_is_out_of_bounds_with_kernel_and_line(run):
    script = "tinygrad_kernel.py"
    with pytest.raises(AssertionError, match="nothing on standard output"):  # the copy back fails, as on a GPU
        run(script, "no_guard", environment={"DEV": "CUDA:CUDA"})
    done = run("failing.py", script, "no_guard", environment={"DEV": "CUDA:CUDA"})
    assert done.status == 4
    bounds = [finding for finding in done.report["findings"] if finding["kind"] == "out of bounds"]
    assert [(finding["kernel"], finding["source_line"]) for finding in bounds] == [("block_sums", 5)]
    assert bounds[0]["thread"] == [36, 0, 0] and bounds[0]["block"] == [1, 0, 0]
