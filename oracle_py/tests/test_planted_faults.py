# SPDX-License-Identifier: Apache-2.0
"""The judge of contracted builds must notice each of these wrong updates, and pass the right one."""

import dataclasses

import numpy as np
import pytest

from gradguard_oracle.float32 import float32_from_text
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.update import Options, State, coefficients, illegal_elements, maximum, update

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


def lines(p, stored, old, o, c, g=None, denominator=None, decay_after=False, coupled=False, new_maximum=None):
    """Section 6 with one line replaced by a wrong one."""
    g = (stored.values() * c.r) * c.clip if g is None else g
    if coupled:
        g = g + o.weight_decay * p
    m = o.beta1 * old.first + c.one_minus_beta1 * g
    v = o.beta2 * old.second + c.one_minus_beta2 * (g * g)
    x = maximum(old.maximum, v) if new_maximum is None else new_maximum(old.maximum, v)
    below = np.sqrt(x * c.inverse_bias2) + o.epsilon if denominator is None else denominator(x)
    move = o.learning_rate * ((m * c.inverse_bias1) / below)
    new_p = (p - move) * c.decay if decay_after else p * c.decay - move
    return new_p, State(STEP + 1, m, v, x)


FAULTS = {
    "no_unscale": lambda p, s, old, o, c: lines(p, s, old, o, c, g=s.values() * c.clip),
    "unscale_twice": lambda p, s, old, o, c: lines(p, s, old, o, c, g=s.values() * c.r * c.r * c.clip),
    "unscale_by_division": lambda p, s, old, o, c: lines(p, s, old, o, c, g=(s.values() / SCALE) * c.clip),
    "no_clip": lambda p, s, old, o, c: lines(p, s, old, o, c, g=s.values() * c.r),
    "clip_folded_into_r": lambda p, s, old, o, c: lines(p, s, old, o, c, g=s.values() * (c.r * c.clip)),
    "epsilon_inside_the_root": lambda p, s, old, o, c: lines(
        p, s, old, o, c, denominator=lambda x: np.sqrt(x * c.inverse_bias2 + o.epsilon)
    ),
    "epsilon_before_bias_correction": lambda p, s, old, o, c: lines(
        p, s, old, o, c, denominator=lambda x: (np.sqrt(x) + o.epsilon) * np.sqrt(c.inverse_bias2)
    ),
    "decay_after_the_update": lambda p, s, old, o, c: lines(p, s, old, o, c, decay_after=True),
    "decay_added_to_the_gradient": lambda p, s, old, o, c: lines(
        p, s, old, o, dataclasses.replace(c, decay=np.float32(1)), coupled=True
    ),
    "maximum_not_stored": lambda p, s, old, o, c: lines(p, s, old, o, c, new_maximum=lambda x_old, v: v),
    "maximum_of_the_corrected": lambda p, s, old, o, c: lines(
        p, s, old, o, c, new_maximum=lambda x_old, v: maximum(x_old, v * c.inverse_bias2)
    ),
    "step_one_behind": lambda p, s, old, o, c: update(p, s, old, o, coefficients(o, STEP - 1, SCALE, CLIP)),
    "bias_power_one_ulp_off": lambda p, s, old, o, c: update(
        p, s, old, o, dataclasses.replace(c, inverse_bias1=np.nextafter(c.inverse_bias1, np.float32(9)))
    ),
    "maximize_ignored": lambda p, s, old, o, c: update(p, s, old, dataclasses.replace(o, maximize=True), c),
    "nothing_happened": lambda p, s, old, o, c: (p, old),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_noticed(case, fault):
    p, stored, old, c = case
    flags = illegal_elements(p, stored, old, OPTIONS, c, *FAULTS[fault](p, stored, old, OPTIONS, c))
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
    wrong = lines(p, stored, old, OPTIONS, c, new_maximum=np.fmax)
    assert illegal_elements(p, stored, old, OPTIONS, c, *wrong)["max_exp_avg_sq"][5]
