# SPDX-License-Identifier: Apache-2.0
"""Triton's PTX through the driver API: right within computed bounds, and a race in a kernel of the user's is found."""

import numpy as np
import pytest
from bounded import Bounded
from program_run import HERE, needs

pytestmark = needs("triton")


def launched(run, kernel, seed=0):
    done = run("triton_kernels.py", kernel, seed=seed)
    given, got = ([np.array(a) for a in done.result[key]] for key in ("given", "got"))
    return done, given, got


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_adamw_is_right_and_clean(run, seed):
    done, (p, m, v, g), (new_p, new_m, new_v, same_g) = launched(run, "adamw", seed)
    assert done.status == 0, done.stderr
    lr, beta1, beta2, eps, decay, c1, c2 = (
        Bounded(np.float64(np.float32(x))) for x in (1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001))
    one = Bounded(1.0)
    m, v, g, p = (Bounded(a) for a in (m, v, g, p))
    m = beta1 * m + (one - beta1) * g
    v = beta2 * v + (one - beta2) * g * g
    root = (v / c2).sqrt()
    p = p * (one - lr * decay) - lr * (m / c1) / (root + eps)
    assert m.holds(new_m) and v.holds(new_v) and p.holds(new_p)
    assert np.array_equal(same_g, g.value)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_softmax_is_right_and_clean(run, seed):
    done, (x,), (_, out) = launched(run, "softmax", seed)
    assert done.status == 0, done.stderr
    shifted = Bounded(x) - Bounded(x).max(1)
    powers = shifted.exp()
    assert (powers / powers.sum(1)).holds(out)


def test_sums_of_squares_are_right_and_clean(run):
    done, (x,), (_, out) = launched(run, "sum_of_squares")
    assert done.status == 0, done.stderr
    padded = np.concatenate([x, np.zeros(-x.size % 256)]).reshape(-1, 256)
    assert (Bounded(padded) * Bounded(padded)).sum(1).holds(out.reshape(-1, 1))


def test_what_a_plain_division_and_root_become_is_told(run):
    """Triton turns them into approximations that flush subnormals, which the source does not show."""
    done, _, _ = launched(run, "adamw")
    kernel = done.kernels()["adamw"]
    assert {"div.full.f32", "sqrt.approx.ftz.f32"} <= set(kernel["approximate_instructions"])
    assert "sqrt.approx.ftz.f32" in kernel["flushing_instructions"]
    assert "approximate" in done.stderr and "subnormals flushed by" in done.stderr


def test_a_race_between_blocks_is_found_with_kernel_and_line(run):
    done, _, _ = launched(run, "race", seed=1)
    assert done.status == 4
    races = [finding for finding in done.report["findings"] if finding["kind"] == "race"]
    assert races and {finding["kernel"] for finding in races} == {"race"}
    source = (HERE / "programs/triton_kernels.py").read_text().splitlines()
    begin = source.index("def race(x_ptr, out_ptr, n, BLOCK: tl.constexpr):") + 1
    assert all(begin < finding["source_line"] <= begin + 5 for finding in races)
    assert all(finding["source_file"].endswith("programs/triton_kernels.py") for finding in races)
