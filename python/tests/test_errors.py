# SPDX-License-Identifier: Apache-2.0
"""Errors of the contract arrive as exceptions with kind, entry, operand and message."""

import pickle

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")

from groups import array, entry, state  # noqa: E402

RNG = np.random.default_rng(0)
ONES = np.ones((2, 3), np.float32)


def entries_with(second):
    return [gradguard.AdamWEntry(ONES, ONES), second]


def raises(kind, site, operand, call):
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, gradguard.Error)
    assert error.kind == kind.__name__
    assert (error.entry, error.operand) == (site, operand)
    assert error.message and str(error).startswith(error.kind)
    return error


@pytest.mark.parametrize(
    ("options", "operand"),
    [
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": 1e39}, "learning_rate"),
        ({"beta1": 1.0}, "beta1"),
        ({"beta2": float("nan")}, "beta2"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"weight_decay": float("inf")}, "weight_decay"),
    ],
)
def test_an_option_outside_its_range_is_named(options, operand):
    chosen = gradguard.AdamWOptions(**options)
    raises(gradguard.InvalidOption, None, operand, lambda: gradguard.guarded_adamw_step([], chosen))
    raises(gradguard.InvalidOption, None, operand, lambda: gradguard.adamw_step(ONES, ONES, options=chosen))
    raises(gradguard.InvalidOption, None, operand, lambda: gradguard.reference.guarded_adamw_step([], chosen))


def test_control_and_guard_are_checked():
    control, guard = gradguard.StepControl(2.0**-128), gradguard.GradientGuardOptions(epsilon=0.0)
    raises(gradguard.InvalidOption, None, "gradient_scale", lambda: gradguard.guarded_adamw_step([], control=control))
    raises(gradguard.InvalidOption, None, "gradient_scale", lambda: gradguard.gradient_stats([ONES], -1.0))
    raises(gradguard.InvalidOption, None, "guard_epsilon", lambda: gradguard.guarded_adamw_step([], guard=guard))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, ">f4"])
def test_another_dtype_is_an_invalid_tensor(dtype):
    bad = gradguard.AdamWEntry(ONES, ONES.astype(dtype))
    raises(gradguard.InvalidTensor, 1, "gradients", lambda: gradguard.guarded_adamw_step(entries_with(bad)))


def test_parameters_are_float32():
    bad = gradguard.AdamWEntry(ONES.astype(np.float16), ONES)
    raises(gradguard.InvalidTensor, 1, "parameters", lambda: gradguard.guarded_adamw_step(entries_with(bad)))


def test_shapes_have_to_be_equal():
    bad = gradguard.AdamWEntry(ONES, ONES.reshape(3, 2))
    raises(gradguard.ShapeMismatch, 1, "gradients", lambda: gradguard.guarded_adamw_step(entries_with(bad)))
    raises(gradguard.ShapeMismatch, 0, "gradients", lambda: gradguard.reference.guarded_adamw_step([bad]))
    moments = gradguard.AdamWEntry(ONES, ONES, gradguard.AdamWState(1, ONES, ONES[:1]))
    raises(gradguard.ShapeMismatch, 1, "second_moment", lambda: gradguard.guarded_adamw_step(entries_with(moments)))


def test_a_state_has_a_step_and_a_maximum_exactly_with_amsgrad():
    amsgrad = gradguard.AdamWOptions(amsgrad=True)
    plain = gradguard.AdamWEntry(ONES, ONES, state(RNG, (2, 3)))
    raises(gradguard.InvalidState, 0, "max_second_moment", lambda: gradguard.guarded_adamw_step([plain], amsgrad))
    no_step = gradguard.AdamWEntry(ONES, ONES, state(RNG, (2, 3), step=0))
    raises(gradguard.InvalidState, 0, "step", lambda: gradguard.guarded_adamw_step([no_step]))


def test_a_step_count_that_leaves_64_bits_overflows():
    last = gradguard.AdamWEntry(ONES, ONES, state(RNG, (2, 3), step=2**64 - 1))
    raises(gradguard.StepOverflow, 0, "step", lambda: gradguard.guarded_adamw_step([last]))


def test_bad_gradients_raise_where_the_policy_says_so():
    bad = entry(RNG, (4,))
    bad.gradients[1] = np.nan
    guard = gradguard.GradientGuardOptions(nonfinite=gradguard.NonFinitePolicy.Error)
    with pytest.raises(gradguard.NonFiniteGradients):
        gradguard.guarded_adamw_step([bad], guard=guard)
    with pytest.raises(gradguard.NonFiniteGradients):
        gradguard.reference.guarded_adamw_step([bad], guard=guard)


def test_a_decision_is_checked():
    with pytest.raises(gradguard.InvalidSummary):
        gradguard.decide(gradguard.GradientStats(total_norm=-1.0))
    decision = gradguard.GradientDecision(clip_multiplier=1.5)
    raises(gradguard.InvalidOption, None, "clip_multiplier", lambda: gradguard.clipped_adamw_step(decision, []))


def test_a_device_that_is_not_here_is_unsupported():
    raises(gradguard.UnsupportedDevice, None, "device", lambda: gradguard.Device("cuda"))
    with pytest.raises(ValueError, match="observer"):
        gradguard.Device(observers="nobody")


def test_the_first_entry_that_offends_is_named_even_before_one_that_is_no_tensor():
    shape, dtype = gradguard.AdamWEntry(ONES, ONES[:1]), gradguard.AdamWEntry(ONES, ONES.astype(np.float64))
    raises(gradguard.ShapeMismatch, 0, "gradients", lambda: gradguard.guarded_adamw_step([shape, dtype]))
    raises(gradguard.InvalidTensor, 0, "gradients", lambda: gradguard.guarded_adamw_step([dtype, shape]))


def test_options_are_checked_before_entries():
    bad = gradguard.AdamWEntry(ONES, ONES.astype(np.float64))
    chosen = gradguard.AdamWOptions(beta1=2.0)
    raises(gradguard.InvalidOption, None, "beta1", lambda: gradguard.guarded_adamw_step([bad], chosen))


@pytest.mark.parametrize("thing", [3, "text", [1.0, 2.0], None])
def test_what_is_no_array_is_a_type_error(thing):
    with pytest.raises(TypeError):
        gradguard.gradient_stats([thing])


def test_entries_are_entries():
    with pytest.raises(TypeError, match="AdamWEntry"):
        gradguard.guarded_adamw_step([ONES])
    with pytest.raises(TypeError, match="AdamWState"):
        gradguard.guarded_adamw_step([gradguard.AdamWEntry(ONES, ONES, "state")])


def test_an_oversized_shape_is_refused_without_a_copy():
    huge = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (2**32,), (0,))
    raises(gradguard.InvalidTensor, 0, "gradients", lambda: gradguard.gradient_stats([huge]))


def test_errors_survive_pickling():
    with pytest.raises(gradguard.ShapeMismatch) as caught:
        gradguard.guarded_adamw_step([gradguard.AdamWEntry(ONES, array(RNG, (3,)))])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.entry) == (type(caught.value), str(caught.value), 0)


def test_every_kind_has_a_class_of_its_name():
    from gradguard import _errors

    assert len(_errors.KINDS) == 11
    assert all(kind.__name__ == kind.kind and getattr(gradguard, kind.kind) is kind for kind in _errors.KINDS)
