# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors as arrays, and PyTorch's own pair as a subject."""

import os

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")
if os.environ.get("GRADGUARD_TORCH") == "none":
    pytest.skip("blocked: GRADGUARD_TORCH=none", allow_module_level=True)
torch = pytest.importorskip("torch", reason="blocked: no PyTorch")

from gradguard.torch_subject import ClipAndAdamW  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_tensor_is_scanned_where_it_lies(dtype):
    tensor = torch.full((3, 4), 0.5, dtype=dtype)
    assert gradguard.gradient_stats([tensor]).total_norm == gradguard.reference.exact_norm([tensor]) == 3**0.5
    tensor[1, 2] = float("inf")
    assert not gradguard.gradient_stats([tensor]).all_finite


def test_a_step_takes_tensors_and_gives_arrays():
    parameters, gradients = torch.ones(5), torch.ones(5, dtype=torch.bfloat16)
    update = gradguard.guarded_adamw_step([gradguard.AdamWEntry(parameters, gradients)]).entries[0]
    shared = torch.from_dlpack(update.parameters)
    assert shared.data_ptr() == update.parameters.ctypes.data
    assert torch.equal(parameters, torch.ones(5))


def test_a_tensor_that_requires_gradients_has_to_be_detached():
    with pytest.raises(gradguard.InvalidTensor, match="detach"):
        gradguard.gradient_stats([torch.ones(3, requires_grad=True)])


def test_a_tensor_that_is_not_contiguous_is_refused():
    with pytest.raises(gradguard.InvalidTensor, match="dense"):
        gradguard.gradient_stats([torch.ones(3, 4).T])


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}], ids=["single-tensor", "foreach", "fused"])
def test_check_says_what_pytorch_keeps_and_breaks(options):
    result = gradguard.check(ClipAndAdamW(**options), cases=100)
    status = {one.name: one.status for one in result.properties}
    # Its clip coefficient is formed in FP32, and its norm squares without scaling.
    assert status["balanced_step"] == status["statistics"] == "broken"
    assert status["negated_and_maximized"] == status["maximize_mirrors"] == "kept"
    assert status["skip_changes_nothing"] == status["invalid_guarded_step"] == "not claimed"
    assert all("Error" not in one.smallest() for one in result.broken)
    clip = next(one for one in result.broken if one.name == "balanced_step")
    assert clip.elements == 1 and "clip_multiplier" in clip.smallest()


def test_the_step_count_of_pytorch_is_float32():
    found = gradguard.check(ClipAndAdamW(large_steps=True), cases=100, only="guarded_step").broken
    assert [one.name for one in found] == ["guarded_step"]


def test_pytorch_skips_nothing_when_held_against_the_whole_contract():
    subject = ClipAndAdamW(abilities=gradguard.Abilities(validates=False))
    result = gradguard.check(subject, cases=50, only=["skip_changes_nothing", "good_skip_good"])
    assert {one.status for one in result.properties} == {"broken"}


def test_the_subject_leaves_its_case_alone_and_repeats_itself():
    one = gradguard.AdamWEntry(np.ones(4, np.float32), np.full(4, 2, np.float32))

    class Case:
        operation, entries, step = "guarded_step", [one], 0
        options, control, guard = gradguard.AdamWOptions(), gradguard.StepControl(), gradguard.GradientGuardOptions()

    first, second = ClipAndAdamW()(Case), ClipAndAdamW()(Case)
    assert np.array_equal(first["entries"][0]["parameters"], second["entries"][0]["parameters"])
    assert np.array_equal(one.parameters, np.ones(4)) and first["total_norm"] == 4.0
