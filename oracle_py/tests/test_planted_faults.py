# SPDX-License-Identifier: Apache-2.0
"""The judge of contracted builds must notice each of these wrong updates, and pass the right one."""

import dataclasses

import numpy as np
import pytest
from wrong_updates import FAULTS, lines

from gradguard_oracle.float32 import float32_from_text
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.update import Options, State, coefficients, illegal_elements, update

COUNT, STEP = 2048, 3
SCALE, CLIP = np.float32(3), np.float32(0.7)
# Epsilon near |g|, strong weight decay: after the first step p hardly depends on |g| otherwise.
OPTIONS = Options(
    **{
        name: float32_from_text(text)
        for name, text in [("epsilon", "0.25"), ("weight_decay", "0.25"), ("learning_rate", "0.125")]
    },
    amsgrad=True,
)


@pytest.fixture
def case():
    rng = np.random.default_rng(31)
    p, g, m, v, x = (rng.normal(size=COUNT).astype(np.float32) for _ in range(5))
    c = coefficients(OPTIONS, STEP, SCALE, CLIP)
    return p, StoredTensor.from_float32(g * SCALE), State(STEP, m, v * v, (v * x) ** 2), c


def bias_power_one_ulp_off(p, stored, old, o, c):
    return update(p, stored, old, o, dataclasses.replace(c, inverse_bias1=np.nextafter(c.inverse_bias1, np.float32(9))))


ALL_FAULTS = FAULTS | {"bias_power_one_ulp_off": bias_power_one_ulp_off}


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_fault_is_noticed(case, fault):
    p, stored, old, c = case
    flags = illegal_elements(p, stored, old, OPTIONS, c, *ALL_FAULTS[fault](p, stored, old, OPTIONS, c))
    assert any(illegal.any() for illegal in flags.values())


def test_the_unbroken_lines_pass(case):
    p, stored, old, c = case
    flags = illegal_elements(p, stored, old, OPTIONS, c, *lines(p, stored, old, OPTIONS, c))
    assert not any(illegal.any() for illegal in flags.values())


def test_maximum_that_drops_nan_is_noticed(case):
    p, stored, old, c = case
    old.maximum[5] = np.nan
    right = lines(p, stored, old, OPTIONS, c)
    assert not illegal_elements(p, stored, old, OPTIONS, c, *right)["max_exp_avg_sq"].any()
    wrong = lines(p, stored, old, OPTIONS, c, new_maximum=lambda x_old, v: (np.fmax(x_old, v),) * 2)
    assert illegal_elements(p, stored, old, OPTIONS, c, *wrong)["max_exp_avg_sq"][5]
