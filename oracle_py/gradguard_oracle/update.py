# SPDX-License-Identifier: Apache-2.0
"""Contract sections 5 and 6: the decision, the update's own bits, and every legal contraction of it."""

from dataclasses import dataclass, field

import numpy as np

from .float32 import fma, same_bits
from .statistics import reciprocal


def _f32(value):
    return field(default_factory=lambda: np.float32(value))


@dataclass(frozen=True)
class Options:
    """AdamWOptions and GradientGuardOptions with the contract's defaults. max_norm None: absent."""

    learning_rate: np.float32 = _f32(1e-3)
    beta1: np.float32 = _f32(0.9)
    beta2: np.float32 = _f32(0.999)
    epsilon: np.float32 = _f32(1e-5)
    weight_decay: np.float32 = _f32(1e-4)
    amsgrad: bool = False
    maximize: bool = False
    max_norm: np.float32 | None = _f32(1.0)
    guard_epsilon: np.float32 = _f32(1e-6)


@dataclass(frozen=True)
class State:
    """step: completed steps, at least 1; moments: [n] float32; maximum None without AMSGrad."""

    step: int
    first: np.ndarray
    second: np.ndarray
    maximum: np.ndarray | None = None


@dataclass(frozen=True)
class Coefficients:
    r: np.float32
    clip: np.float32
    one_minus_beta1: np.float32
    one_minus_beta2: np.float32
    inverse_bias1: np.float32
    inverse_bias2: np.float32
    decay: np.float32


def clip_multiplier(total_norm, options):
    """Section 5 for a good group: FP64, rounded once to FP32. A max_norm of -0 counts as 0."""
    if options.max_norm is None:
        return np.float32(1)
    quotient = (float(options.max_norm) + 0.0) / (total_norm + float(options.guard_epsilon))
    return np.float32(min(quotient, 1.0))


def power(beta, t):
    """beta^t in FP64 by squaring from the lowest bit of t."""
    value, base = 1.0, float(beta)
    while t:
        if t & 1:
            value *= base
        base *= base
        t >>= 1
    return value


def coefficients(options, step, gradient_scale, clip):
    """step: completed steps before this one."""
    one = np.float32(1)
    return Coefficients(
        r=reciprocal(gradient_scale),
        clip=np.float32(clip),
        one_minus_beta1=one - options.beta1,
        one_minus_beta2=one - options.beta2,
        inverse_bias1=np.float32(1.0 / (1.0 - power(options.beta1, step + 1))),
        inverse_bias2=np.float32(1.0 / (1.0 - power(options.beta2, step + 1))),
        decay=one - options.learning_rate * options.weight_decay,
    )


def effective_gradient(stored, c, maximize):
    """Section 6's g: one legal value, no contraction can touch it."""
    g = stored.values() * c.r
    if c.clip != 1:
        g = g * c.clip
    return -g if maximize else g


def maximum(old, new):
    """AMSGrad's x: NaN if either is NaN, +0 of two zeros."""
    x = np.where(np.isnan(old) | np.isnan(new), np.float32(np.nan), np.where(old > new, old, new))
    return np.where((old == 0) & (new == 0), np.float32(0), x)


def _old(state, size):
    zeros = np.zeros(size, np.float32)
    return (zeros, zeros, zeros) if state is None else (state.first, state.second, state.maximum)


def _quotient(m, x, c, options):
    return (m * c.inverse_bias1) / (np.sqrt(x * c.inverse_bias2) + options.epsilon)


def update(parameters, stored, state, options, c):
    """[n] float32 parameters and a StoredTensor of gradients -> (new parameters, new State), without contraction."""
    with np.errstate(all="ignore"):
        m_old, v_old, max_old = _old(state, len(parameters))
        g = effective_gradient(stored, c, options.maximize)
        m = options.beta1 * m_old + c.one_minus_beta1 * g
        v = options.beta2 * v_old + c.one_minus_beta2 * (g * g)
        x = maximum(max_old, v) if options.amsgrad else v
        p = parameters * c.decay - options.learning_rate * _quotient(m, x, c, options)
    step = 1 if state is None else state.step + 1
    assert p.dtype == m.dtype == v.dtype == np.float32
    return p, State(step, m, v, x if options.amsgrad else None)


def _sum_of_products(a, b, c, d):
    """The three values that a*b + c*d can take: nothing fused, the first product fused, the second one."""
    return [a * b + c * d, fma(a, b, c * d), fma(c, d, a * b)]


def illegal_elements(parameters, stored, state, options, c, new_parameters, new_state):
    """Elements that no contraction explains -> {"param": [n] bool, "exp_avg": ..., "exp_avg_sq": ..., ...}.

    x and p are judged from the m and v that the subject itself stored (3 values each for m, v and p).
    """
    with np.errstate(all="ignore"):
        m_old, v_old, max_old = _old(state, len(parameters))
        g = effective_gradient(stored, c, options.maximize)
        legal_m = _sum_of_products(options.beta1, m_old, c.one_minus_beta1, g)
        legal_v = _sum_of_products(options.beta2, v_old, c.one_minus_beta2, g * g)
        x = maximum(max_old, new_state.second) if options.amsgrad else new_state.second
        quotient = _quotient(new_state.first, x, c, options)
        legal_p = _sum_of_products(parameters, c.decay, -options.learning_rate, quotient)
    result = {
        "param": ~_among(new_parameters, legal_p),
        "exp_avg": ~_among(new_state.first, legal_m),
        "exp_avg_sq": ~_among(new_state.second, legal_v),
    }
    if options.amsgrad:
        result["max_exp_avg_sq"] = ~same_bits(new_state.maximum, x)
    return result


def _among(values, choices):
    return np.logical_or.reduce([same_bits(values, choice) for choice in choices])
