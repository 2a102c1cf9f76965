# SPDX-License-Identifier: Apache-2.0
"""Where PyTorch is no oracle for the contract, and by how much: facts that the comparison has to know."""

import math

import numpy as np
import pytest

from gradguard_oracle import pytorch
from gradguard_oracle.float32 import bits_of, ulps_between
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.statistics import group_stats, reciprocal
from gradguard_oracle.step import Entry
from gradguard_oracle.update import Options, State, clip_multiplier

if pytorch.why_not():
    pytest.skip(f"blocked: {pytorch.why_not()}", allow_module_level=True)

import torch  # noqa: E402


def parameters_with(gradients):
    made = []
    for gradient in gradients:
        parameter = torch.nn.Parameter(torch.zeros(len(gradient), dtype=gradient.dtype))
        parameter.grad = gradient.clone()
        made.append(parameter)
    return made


def entry(value, state=None):
    return Entry("a", (1,), np.array([value], np.float32), state)


def test_clipping_factor_in_fp32_differs_by_one_unit_now_and_then():
    rng = np.random.default_rng(41)
    different = 0
    for norm in rng.uniform(1, 100, 2000).astype(np.float32):
        theirs = np.float32((1.0 / (torch.tensor(float(norm)) + 1e-6)).clamp(max=1.0).item())
        ours = clip_multiplier(float(norm), Options())
        assert ulps_between(theirs, ours) <= 2  # three roundings there, one here
        different += bool(theirs != ours)
    assert 0 < different < 2000


def test_a_nan_is_spread_to_every_gradient_and_nothing_is_skipped():
    parameters = parameters_with([torch.tensor([1.0, float("nan")]), torch.tensor([2.0])])
    assert math.isnan(torch.nn.utils.clip_grad_norm_(parameters, 1.0).item())
    assert all(torch.isnan(parameter.grad).all() for parameter in parameters)
    stats = group_stats([StoredTensor.from_float32([1, np.nan]), StoredTensor.from_float32([2])], 1)
    assert not stats.all_finite and stats.total_norm == math.inf


def test_half_precision_norms_are_rounded_to_half_precision():
    (parameter,) = parameters_with([torch.tensor([200.0] * 3, dtype=torch.float16)])
    assert torch.nn.utils.clip_grad_norm_([parameter], 1e9).item() == 346.5
    bits = np.array([200] * 3, np.float16).view(np.uint16)
    assert group_stats([StoredTensor("F16", (3,), bits)], 1).exact_norm == 346.41016151377545


def test_large_values_overflow_its_norm_and_not_ours():
    (parameter,) = parameters_with([torch.tensor([1e30, 1e30])])
    assert torch.nn.utils.clip_grad_norm_([parameter], 1.0).item() == math.inf
    assert 1.4e30 < group_stats([StoredTensor.from_float32([1e30, 1e30])], 1).total_norm < 1.5e30


def test_division_by_the_scale_is_not_multiplication_by_its_reciprocal():
    theirs = (torch.tensor(5.0) / 3.0).item()
    ours = np.float32(5) * reciprocal(3)
    assert (int(bits_of([theirs])[0]), int(bits_of([ours])[0])) == (0x3FD55555, 0x3FD55556)


def test_the_defaults_are_not_the_contracts():
    group = torch.optim.AdamW(parameters_with([torch.zeros(1)])).param_groups[0]
    ours = Options()
    assert (group["eps"], group["weight_decay"]) == (1e-8, 1e-2)
    assert (ours.epsilon, ours.weight_decay) == (np.float32(1e-5), np.float32(1e-4))


def test_a_double_beta_moves_the_second_moment():
    """0.999 and its nearest FP32: (1 - beta) differs by 1.3e-5 of itself, hundreds of FP32 units."""
    made = []
    for beta2 in (0.999, float(np.float32(0.999))):
        parameters = parameters_with([torch.tensor([1.0])])
        optimizer = torch.optim.AdamW(parameters, betas=(0.9, beta2))
        optimizer.step()
        made.append(np.float32(optimizer.state[parameters[0]]["exp_avg_sq"].item()))
    assert ulps_between(*made) > 100


def test_a_missing_gradient_is_not_a_zero_gradient():
    parameters = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    parameters[1].grad = torch.zeros(1)
    torch.optim.AdamW(parameters, lr=0.5, weight_decay=0.5).step()
    assert [parameter.item() for parameter in parameters] == [1.0, 0.75]


@pytest.mark.parametrize("variant", pytorch.available_variants())
def test_its_step_stops_at_two_to_the_24(variant):
    one = np.ones(1, np.float32)
    made = pytorch.step([entry(1, State(2**24, one, one))], [one], Options(max_norm=None), variant)
    assert made.entries[0].state.step == 2**24
