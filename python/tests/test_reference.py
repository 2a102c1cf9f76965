# SPDX-License-Identifier: Apache-2.0
"""The oracle from Python agrees with the independent one, and its enclosures hold what the kernels give."""

import math

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")

from gradguard_oracle.statistics import group_stats, summarize  # noqa: E402
from groups import array, assert_same_entries, entry, group, oracle_step, stored  # noqa: E402

reference = gradguard.reference
OPERANDS = ("parameters", "first_moment", "second_moment")


def parts(update):
    return {
        "parameters": update.parameters,
        "first_moment": update.state.first_moment,
        "second_moment": update.state.second_moment,
        "max_second_moment": update.state.max_second_moment,
    }


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_exact_norm_is_the_independent_oracles(scale):
    gradients = [one.gradients for one in group(1)]
    expected = group_stats([stored(one) for one in gradients], scale)
    assert reference.exact_norm(gradients, scale) == expected.exact_norm
    sums = [summarize(stored(one), scale) for one in gradients]
    assert reference.exact_sum_of_squares(gradients, scale) == sum(one.exact_sum for one in sums if one is not None)


def test_the_exact_norm_neither_overflows_nor_underflows():
    assert reference.exact_norm([np.float32([3 * 2.0**100, 4 * 2.0**100])]) == 5 * 2.0**100
    assert reference.exact_norm([np.float32([2.0**-149])]) == 2.0**-149
    assert reference.exact_norm([np.float32([1.0, np.inf])]) == math.inf
    assert reference.exact_norm([]) == 0.0


def test_the_tree_is_the_independent_oracles_and_the_devices():
    gradients = array(np.random.default_rng(2), (5000,), "BF16")
    summary, expected = reference.tree_summary(gradients, 2.0), summarize(stored(gradients), 2.0)
    assert (summary.scale, summary.sumsq, summary.bad) == (expected.scale, expected.sumsq, 0.0)
    device = gradguard.gradient_stats([gradients], 2.0)
    assert (device.summaries[0].scale, device.summaries[0].sumsq) == (summary.scale, summary.sumsq)
    host = reference.gradient_stats([gradients], 2.0)
    assert (host.total_norm, host.scratch_bytes) == (device.total_norm, device.scratch_bytes)


def test_the_oracles_step_is_the_independent_ones():
    options, guard = gradguard.AdamWOptions(amsgrad=True), gradguard.GradientGuardOptions(0.25)
    entries = group(3, amsgrad=True)
    update = reference.guarded_adamw_step(entries, options, gradguard.StepControl(4.0), guard)
    expected, report = oracle_step(entries, options, gradguard.StepControl(4.0), guard)
    assert_same_entries(update.entries, expected)
    assert np.float32(update.clip_multiplier) == report.clip
    assert update.entries[2].parameters is entries[2].parameters


@pytest.mark.parametrize("amsgrad", [False, True])
def test_enclosures_hold_what_both_builds_store(amsgrad):
    options = gradguard.AdamWOptions(learning_rate=0.01, amsgrad=amsgrad)
    one = entry(np.random.default_rng(4), (40, 30), "F16", 6, amsgrad)
    c = reference.coefficients(options, t=7)
    enclosure, hull, exact = (f(one, c) for f in (reference.enclosure, reference.hull, reference.exact_update))
    assert set(enclosure) == set(hull) == set(exact) == {*OPERANDS, *(["max_second_moment"] if amsgrad else [])}
    for fmad in (False, True):
        device = gradguard.Device(fmad=fmad)
        update = gradguard.adamw_step(one.parameters, one.gradients, one.state, options, device=device)
        legal = reference.legal_set(one, update, c)
        for name, (lo, hi, may_be_nan) in enclosure.items():
            got = parts(update)[name]
            assert lo.dtype == np.float64 and may_be_nan.dtype == np.bool_
            assert lo.shape == got.shape and not may_be_nan.any()
            assert ((lo <= got) & (got <= hi)).all()
            assert ((lo <= exact[name]) & (exact[name] <= hi)).all()
            low, high, _ = hull[name]
            assert low.dtype == np.float32 and ((low <= got) & (got <= high)).all()
            assert legal[name].shape == (*got.shape, 3)
            assert (legal[name] == got[..., None]).any(-1).all()
            if not fmad:
                assert (legal[name][..., 0] == got).all()


def test_an_enclosure_refuses_a_neighbouring_number():
    one = entry(np.random.default_rng(5), (100,))
    c = reference.coefficients(gradguard.AdamWOptions())
    lo, hi, _ = reference.hull(one, c)["second_moment"]
    beyond = np.nextafter(hi, np.float32(np.inf))
    assert not ((lo <= beyond) & (beyond <= hi)).any()


def test_reassociation_widens_the_enclosure():
    one = entry(np.random.default_rng(6), (50,), step=3)
    c = reference.coefficients(gradguard.AdamWOptions(), t=4)
    lo, hi, _ = reference.enclosure(one, c)["parameters"]
    wide_lo, wide_hi, _ = reference.enclosure(one, c, gradguard.Abilities(reassociates=True))["parameters"]
    assert (wide_lo < lo).all() and (hi < wide_hi).all()


def test_the_norm_lies_within_its_bound():
    gradients = [array(np.random.default_rng(7), (3000,), "BF16"), array(np.random.default_rng(8), (5,))]
    exact, norm = reference.exact_norm(gradients), gradguard.gradient_stats(gradients).total_norm
    bound = reference.norm_bound(gradients)
    assert 0 < abs(norm - exact) <= bound
    assert reference.norm_bound(gradients, kind=gradguard.NormKind.WithinBound) > bound


def test_a_bound_needs_finite_gradients():
    with pytest.raises(ValueError, match="finite"):
        reference.norm_bound([np.float32([np.nan])])


def test_ulp_is_that_of_float32():
    assert reference.ulp_of(1.0) == 2.0**-23
    assert reference.ulp_of(0.0) == 2.0**-149
    assert reference.ulp_error(float(np.float32(1) + np.float32(2.0**-23)), 1.0) == 1.0
    assert reference.ulp_error(float("nan"), 1.0) == math.inf


def test_coefficients_are_the_contracts():
    c = reference.coefficients(gradguard.AdamWOptions(learning_rate=0.1, weight_decay=0.3), t=1)
    assert np.float32(c.decay).view(np.uint32) == 0x3F7851EC
    assert np.float32(reference.coefficients(gradguard.AdamWOptions(), gradguard.StepControl(3.0)).r) * np.float32(
        5
    ) == np.uint32(0x3FD55556).view(np.float32)
    with pytest.raises(ValueError, match="at least 1"):
        reference.coefficients(gradguard.AdamWOptions(), t=0)
