# SPDX-License-Identifier: Apache-2.0
"""Section 6 with one line replaced by a wrong one. Every entry of FAULTS is a function like update.update()."""

import dataclasses

import numpy as np

from gradguard_oracle import update as right
from gradguard_oracle.update import State, coefficients, maximum


def lines(p, stored, old, o, c, g=None, denominator=None, decay_after=False, coupled=False, new_maximum=None):
    """The update of an entry; without a replacement the contract's own."""
    first, second, greatest = right._old(old, len(p))
    if g is None:
        g = right.effective_gradient(stored, c, o.maximize)
    elif o.maximize:
        g = -g
    if coupled:
        g = g + o.weight_decay * p
    m = o.beta1 * first + c.one_minus_beta1 * g
    v = o.beta2 * second + c.one_minus_beta2 * (g * g)
    x, kept = v, None
    if o.amsgrad:
        x, kept = (maximum(greatest, v),) * 2 if new_maximum is None else new_maximum(greatest, v)
    below = np.sqrt(x * c.inverse_bias2) + o.epsilon if denominator is None else denominator(x)
    move = o.learning_rate * ((m * c.inverse_bias1) / below)
    new_p = (p - move) * c.decay if decay_after else p * c.decay - move
    return new_p, State(1 if old is None else old.step + 1, m, v, kept)


def _scale(c):
    """A loss scale with this reciprocal; the planted tests use scales for which it is the scale itself."""
    return np.float32(1) / c.r


def _pair(function):
    def both(old, v):
        x = function(old, v)
        return x, x

    return both


FAULTS = {
    "no_unscale": lambda p, s, old, o, c: lines(p, s, old, o, c, g=s.values() * c.clip),
    "unscale_twice": lambda p, s, old, o, c: lines(p, s, old, o, c, g=s.values() * c.r * c.r * c.clip),
    "unscale_by_division": lambda p, s, old, o, c: lines(p, s, old, o, c, g=(s.values() / _scale(c)) * c.clip),
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
    "maximum_not_stored": lambda p, s, old, o, c: lines(
        p, s, old, o, c, new_maximum=lambda x_old, v: (maximum(x_old, v), x_old)
    ),
    "maximum_forgotten": lambda p, s, old, o, c: lines(p, s, old, o, c, new_maximum=_pair(lambda x_old, v: v)),
    "maximum_of_the_corrected": lambda p, s, old, o, c: lines(
        p, s, old, o, c, new_maximum=_pair(lambda x_old, v: maximum(x_old, v * c.inverse_bias2))
    ),
    "step_one_ahead": lambda p, s, old, o, c: lines(
        p, s, old, o, dataclasses.replace(coefficients(o, (old.step if old else 0) + 1, 1, 1), r=c.r, clip=c.clip)
    ),
    "maximize_ignored": lambda p, s, old, o, c: lines(p, s, old, dataclasses.replace(o, maximize=not o.maximize), c),
    "nothing_happened": lambda p, s, old, o, c: (p, old),
}
