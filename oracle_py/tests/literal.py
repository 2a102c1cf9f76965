# SPDX-License-Identifier: Apache-2.0
"""The contract read a second time in Python, number by number: rationals, plain loops, each operation rounded once.

No NumPy arithmetic and none of the oracle's but `nearest_float32`. Slow; for groups of finite values without overflow.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from gradguard_oracle.float32 import nearest_float32

ZERO = Fraction(0)


def rounded(value):
    """To the nearest FP32, as a Fraction."""
    result = float(nearest_float32(value))
    assert math.isfinite(result)
    return Fraction(result)


def root(value):
    """sqrt rounded once: 60 bits of it and a last bit that says whether anything follows."""
    if value == 0:
        return ZERO
    shift = 200 + (value.denominator.bit_length() - value.numerator.bit_length())
    shift += shift % 2
    scaled = value * Fraction(2) ** shift
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(whole) ** 2 == scaled
    return rounded(Fraction(2 * whole + (not exact), 2) / Fraction(2) ** (shift // 2))


def merged(a, b):
    """Section 4: two pairs (scale, sumsq)."""
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    large, small = (a, b) if a[0] >= b[0] else (b, a)
    q = rounded(small[0] / large[0])
    return large[0], rounded(large[1] + rounded(small[1] * rounded(q * q)))


def block_tree(lanes):
    offset = 128
    while offset >= 1:
        for lane in range(offset):
            lanes[lane] = merged(lanes[lane], lanes[lane + offset])
        offset //= 2
    return lanes[0]


def summary(values):
    """(scale, sumsq) of a tensor's unscaled values."""
    blocks = min(-(-len(values) // 1024), 1024)
    partial = []
    for block in range(blocks):
        lanes = []
        for thread in range(256):
            pair = (ZERO, ZERO)
            for at in range(block * 256 + thread, len(values), 256 * blocks):
                if values[at] != 0:
                    pair = merged(pair, (abs(values[at]), Fraction(1)))
            lanes.append(pair)
        partial.append(block_tree(lanes))
    if blocks == 1:
        return partial[0]
    lanes = []
    for thread in range(256):
        pair = (ZERO, ZERO)
        for at in range(thread, blocks, 256):
            pair = merged(pair, partial[at])
        lanes.append(pair)
    return block_tree(lanes)


def bias(beta, t):
    value, base = 1.0, float(beta)
    for bit in reversed(f"{t:b}"):
        if bit == "1":
            value *= base
        base *= base
    return Fraction(float(nearest_float32(Fraction(1.0 / (1.0 - value)))))


@dataclass
class LiteralStep:
    """summaries: (scale, sumsq) or None; updates: {suffix: [Fraction]} or None for an empty entry."""

    total_norm: float
    clip: Fraction
    summaries: list
    updates: list


def fractions(values):
    return [Fraction(float(value)) for value in values]


def step(entries, gradients, scale, options):
    """A guarded step of a good group with a max_norm."""
    o = {
        name: Fraction(float(getattr(options, name)))
        for name in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "max_norm", "guard_epsilon")
    }
    r = rounded(1 / Fraction(float(scale)))
    unscaled = [[rounded(raw * r) for raw in fractions(stored.values())] for stored in gradients]
    summaries = [summary(values) if values else None for values in unscaled]
    total = 0.0
    for pair in summaries:
        if pair is not None:
            total += (float(pair[0]) * float(pair[0])) * float(pair[1])
    norm = math.sqrt(total)
    clip = rounded(Fraction(min(float(o["max_norm"]) / (norm + float(o["guard_epsilon"])), 1.0)))
    updates = []
    for entry, values in zip(entries, unscaled, strict=True):
        updates.append(updated(entry, values, clip, o, options) if values else None)
    return LiteralStep(norm, clip, summaries, updates)


def updated(entry, unscaled, clip, o, options):
    """Section 6 for one entry: {suffix: [n] Fraction}."""
    count, state = len(unscaled), entry.state
    t = (state.step if state else 0) + 1
    ib1, ib2 = bias(options.beta1, t), bias(options.beta2, t)
    decay = rounded(1 - rounded(o["learning_rate"] * o["weight_decay"]))
    omb1, omb2 = rounded(1 - o["beta1"]), rounded(1 - o["beta2"])
    zeros = [ZERO] * count
    first, second, greatest = zeros, zeros, zeros
    if state:
        first, second = fractions(state.first), fractions(state.second)
        greatest = fractions(state.maximum) if options.amsgrad else zeros
    result = {"param": [], "exp_avg": [], "exp_avg_sq": []} | ({"max_exp_avg_sq": []} if options.amsgrad else {})
    for i, p_old in enumerate(fractions(entry.parameters)):
        g = unscaled[i] if clip == 1 else rounded(unscaled[i] * clip)
        g = -g if options.maximize else g
        m = rounded(rounded(o["beta1"] * first[i]) + rounded(omb1 * g))
        v = rounded(rounded(o["beta2"] * second[i]) + rounded(omb2 * rounded(g * g)))
        x = max(greatest[i], v) if options.amsgrad else v
        below = rounded(root(rounded(x * ib2)) + o["epsilon"])
        move = rounded(o["learning_rate"] * rounded(rounded(m * ib1) / below))
        result["param"].append(rounded(rounded(p_old * decay) - move))
        result["exp_avg"].append(m)
        result["exp_avg_sq"].append(v)
        if options.amsgrad:
            result["max_exp_avg_sq"].append(x)
    return result
