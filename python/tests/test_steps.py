# SPDX-License-Identifier: Apache-2.0
"""The library's operations from Python agree with the independent oracle bit for bit."""

import math

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")

from groups import array, assert_same_entries, entry, group, oracle_step, same_bits, stored  # noqa: E402

NO_FMAD = gradguard.Device(fmad=False)
OPTIONS = {
    "defaults": gradguard.AdamWOptions(),
    "maximize": gradguard.AdamWOptions(learning_rate=0.1, weight_decay=0.3, maximize=True),
    "amsgrad": gradguard.AdamWOptions(beta1=0.0, beta2=0.25, epsilon=1e-8, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("scale", [1.0, 128.0, 3.0])
def test_a_guarded_step_has_the_oracles_bits(name, scale):
    options, control, guard = OPTIONS[name], gradguard.StepControl(scale), gradguard.GradientGuardOptions(0.7)
    entries = group(amsgrad=options.amsgrad)
    update = gradguard.guarded_adamw_step(entries, options, control, guard, device=NO_FMAD)
    expected, report = oracle_step(entries, options, control, guard)
    assert_same_entries(update.entries, expected)
    assert np.float32(update.clip_multiplier) == report.clip
    assert update.skip_reason is None
    assert [one.updated for one in update.entries] == [True, True, False, True, True]


def test_a_report_has_the_oracles_numbers():
    entries = group()
    report = gradguard.gradient_stats([one.gradients for one in entries], 8.0)
    control = gradguard.StepControl(8.0)
    _, expected = oracle_step(entries, gradguard.AdamWOptions(), control, gradguard.GradientGuardOptions())
    want = expected.stats
    assert report.total_norm == want.total_norm
    assert np.float32(report.max_finite_abs) == want.max_finite_abs
    assert (report.all_finite, report.elements, report.tensors) == (want.all_finite, want.elements, want.tensors)
    assert report.gradient_scale == 8.0
    assert report.reduction_launches == want.reduction_launches
    assert report.readback_bytes == want.readback_bytes
    assert report.scratch_bytes == want.scratch_bytes
    for got, summary in zip(report.summaries, want.summaries, strict=True):
        assert (got.scale, got.sumsq) == ((0.0, 0.0) if summary is None else (summary.scale, summary.sumsq))


def test_an_unguarded_step_has_the_oracles_bits():
    one = entry(np.random.default_rng(1), (5, 9), "BF16", 7)
    update = gradguard.adamw_step(one.parameters, one.gradients, one.state, device=NO_FMAD)
    no_clip = gradguard.GradientGuardOptions(max_norm=None)
    expected, _ = oracle_step([one], gradguard.AdamWOptions(), gradguard.StepControl(), no_clip)
    assert_same_entries([update], expected)


def test_the_guarded_step_is_the_composition_of_its_three_halves():
    entries, guard = group(2), gradguard.GradientGuardOptions(0.5)
    decision = gradguard.decide(gradguard.gradient_stats([one.gradients for one in entries]).stats, guard)
    halves = gradguard.clipped_adamw_step(decision, entries)
    whole = gradguard.guarded_adamw_step(entries, guard=guard)
    assert whole.clip_multiplier == decision.clip_multiplier
    for one, two in zip(halves, whole.entries, strict=True):
        assert same_bits(one.parameters, two.parameters)


def test_a_bad_gradient_leaves_the_very_objects_of_the_whole_group():
    entries = group(3)
    entries[1].gradients[2] = np.inf
    update = gradguard.guarded_adamw_step(entries)
    assert update.skip_reason == gradguard.SkipReason.NonFinite
    assert update.clip_multiplier == 1.0
    assert update.report.total_norm == math.inf
    assert [summary.bad for summary in update.report.summaries] == [0.0, 1.0, 0.0, 0.0, 0.0]
    for one, result in zip(entries, update.entries, strict=True):
        assert result.parameters is one.parameters
        assert result.state is one.state
        assert not result.updated


def test_a_requested_skip_scans_nothing():
    entries = group(4)
    update = gradguard.guarded_adamw_step(entries, control=gradguard.StepControl(skip_update=True))
    assert update.skip_reason == gradguard.SkipReason.Requested
    assert update.report is None
    assert all(result.parameters is one.parameters for one, result in zip(entries, update.entries, strict=True))


def test_a_group_of_empty_entries_is_skipped_as_empty():
    update = gradguard.guarded_adamw_step([entry(np.random.default_rng(5), (0, 3))])
    assert update.skip_reason == gradguard.SkipReason.Empty
    assert update.entries[0].state is None


def test_a_result_steps_again():
    rng = np.random.default_rng(6)
    one = entry(rng, (4, 4))
    for completed in range(1, 6):
        update = gradguard.guarded_adamw_step([one], device=NO_FMAD).entries[0]
        control, guard = gradguard.StepControl(), gradguard.GradientGuardOptions()
        expected, _ = oracle_step([one], gradguard.AdamWOptions(), control, guard)
        assert_same_entries([update], expected)
        assert update.state.step == completed
        one = gradguard.AdamWEntry(update.parameters, array(rng, (4, 4)), update.state)


def test_any_iterable_of_gradients_will_do():
    gradients = [array(np.random.default_rng(7), (3,)), array(np.random.default_rng(8), (2, 2), "F16")]
    assert gradguard.gradient_stats(iter(gradients)).total_norm == gradguard.gradient_stats(tuple(gradients)).total_norm


def test_fmad_and_no_fmad_give_the_same_statistics_and_other_updates():
    one = entry(np.random.default_rng(9), (64, 64), step=4)
    fused = gradguard.guarded_adamw_step([one], device=gradguard.Device(fmad=True))
    unfused = gradguard.guarded_adamw_step([one], device=NO_FMAD)
    assert fused.report.total_norm == unfused.report.total_norm
    assert not same_bits(fused.entries[0].parameters, unfused.entries[0].parameters)


def test_every_option_of_the_oracle_is_stored_as_given():
    assert stored(np.float16([1.5])).values()[0] == 1.5
    options = gradguard.AdamWOptions(learning_rate=0.1)
    assert options.learning_rate == float(np.float32(0.1))
    assert (options.epsilon, options.amsgrad) == (float(np.float32(1e-5)), False)
