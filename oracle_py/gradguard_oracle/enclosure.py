# SPDX-License-Identifier: Apache-2.0
"""What FP32 can make of the contract's update and of PyTorch's, element by element, from the same inputs.

Inputs and coefficients may be intervals. With `real_coefficients` both formulas hold the value of the mathematical
AdamW for every input inside: two readings of one formula then overlap, and where they do not, the formulas differ.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from .interval import Interval, cast_to_float32

# FP64 operations on Python's side (a difference of 1, a product, a quotient, pow): each is off by at most 2^-52 of 1 or
# of its result.
FP64_STEP = 2.0**-52


@dataclass(frozen=True)
class Inputs:
    """One entry before a step. Arrays [n] float32; old ones are zeros before the first update. step: completed ones."""

    parameters: np.ndarray
    first: np.ndarray
    second: np.ndarray
    maximum: np.ndarray
    step: int


def real_coefficients(options, step, c):
    """The contract's coefficients c of a step, each as an interval that also holds its real value."""

    def both(given, lo, hi):
        return Interval.hull(Interval.of(given), Interval(lo, hi))

    changed = {}
    for k, beta in (("1", options.beta1), ("2", options.beta2)):
        exact = 1 - float(beta)
        changed[f"one_minus_beta{k}"] = both(getattr(c, f"one_minus_beta{k}"), exact - FP64_STEP, exact + FP64_STEP)
        low, high = _bias_correction(beta, step)
        inverse = both(getattr(c, f"inverse_bias{k}"), (1 - FP64_STEP) / high, (1 + FP64_STEP) / low)
        changed[f"inverse_bias{k}"] = inverse
    exact = 1 - float(options.learning_rate) * float(options.weight_decay)
    changed["decay"] = both(c.decay, exact - FP64_STEP, exact + FP64_STEP)
    return replace(c, **changed)


def contract_moments(inputs, g, options, c):
    """(m, v) of contract section 6 from the effective gradient g (maximize already in it)."""
    g = Interval.of(g)
    m = Interval.of(inputs.first) * options.beta1 + g * c.one_minus_beta1
    v = Interval.of(inputs.second) * options.beta2 + (g * g) * c.one_minus_beta2
    return m, v


def contract_parameters(inputs, m, x, options, c):
    """p of contract section 6 from the stored m and x."""
    below = (Interval.of(x) * c.inverse_bias2).sqrt() + options.epsilon
    quotient = (Interval.of(m) * c.inverse_bias1) / below
    return Interval.of(inputs.parameters) * c.decay - quotient * options.learning_rate


def _one_minus(value):
    return cast_to_float32(1 - value - FP64_STEP, 1 - value + FP64_STEP)


def pytorch_moments(inputs, g, options):
    """(m, v) of torch.optim.AdamW: m = lerp(m, g, 1 - beta1), by the formula that its weight chooses;
    v = v * beta2 + (1 - beta2) * g * g, in either order."""
    g, old = Interval.of(g), Interval.of(inputs.first)
    weight = _one_minus(float(options.beta1))
    m = [] if weight.lo >= 0.5 else [old + weight * (g - old)]
    if weight.hi >= 0.5:
        m.append(g - (Interval.of(np.float32(1)) - weight) * (g - old))
    weight2 = _one_minus(float(options.beta2))
    kept = Interval.of(inputs.second) * options.beta2
    return Interval.hull(*m), Interval.hull(kept + (g * weight2) * g, kept + (g * g) * weight2)


def _bias_correction(beta, step):
    """1 - beta^(step + 1) in FP64: (lo, hi)."""
    value = 1 - float(beta) ** (step + 1)
    return value - 2 * FP64_STEP, value + 2 * FP64_STEP


def pytorch_parameters(inputs, m, x, options):
    """p of torch.optim.AdamW from the stored m and x: decay first, then the step over sqrt(x) / sqrt(bc2) + epsilon.

    Square roots of long arrays come from a vector library that promises one unit, not half of one: two roundings.
    """
    rate, wd = float(options.learning_rate), float(options.weight_decay)
    decay = _one_minus(rate * wd)
    (low1, high1), (low2, high2) = (_bias_correction(beta, inputs.step) for beta in (options.beta1, options.beta2))
    more, less = 1 + 4 * FP64_STEP, 1 - 4 * FP64_STEP
    size = cast_to_float32(rate / high1 * less, rate / low1 * more)
    root = cast_to_float32(math.sqrt(low2) * less, math.sqrt(high2) * more)
    below = Interval.of(x).sqrt().rounded() / root + options.epsilon
    moves = [(Interval.of(m) * size) / below, (Interval.of(m) / below) * size]
    return Interval.of(inputs.parameters) * decay - Interval.hull(*moves)


def clipped(unscaled, norm, max_norm):
    """The gradient after clipping by a norm: g * min(max_norm / (norm + 1e-6), 1). PyTorch forms the factor in FP32 as
    a reciprocal times max_norm: three roundings; the contract in FP64, rounded once."""
    below = Interval.of(norm) + np.float32(1e-6)
    factor = (Interval.of(np.float32(max_norm)) / below).rounded()
    factor = Interval(np.minimum(factor.lo, 1), np.minimum(factor.hi, 1))
    return Interval.of(unscaled) * factor
