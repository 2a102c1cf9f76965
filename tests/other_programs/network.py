# SPDX-License-Identifier: Apache-2.0
"""The small network that other people's frameworks train: its data, and the same training with bounds."""

import numpy as np
from bounded import Bounded

SAMPLES, INPUTS, HIDDEN, CLASSES = 32, 8, 16, 4
RATE = 0.125
STEPS = 4


def data(seed=0):
    """x [32, 8], y [32] class numbers, w1 [8, 16], w2 [16, 4], as FP32 and int32."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((SAMPLES, INPUTS)).astype(np.float32)
    y = random.integers(0, CLASSES, SAMPLES).astype(np.int32)
    w1 = (random.standard_normal((INPUTS, HIDDEN)) * 0.3).astype(np.float32)
    w2 = (random.standard_normal((HIDDEN, CLASSES)) * 0.3).astype(np.float32)
    return x, y, w1, w2


def bounded_losses():
    """The loss before each step of plain gradient descent on softmax cross entropy, with bounds."""
    x, y, w1, w2 = (Bounded(a) if a.dtype == np.float32 else a for a in data())
    wanted = np.eye(CLASSES)[y]
    losses = []
    for _ in range(STEPS):
        before = x @ w1
        hidden = before.relu()
        logits = hidden @ w2
        shifted = logits - logits.max(1)
        powers = shifted.exp()
        sums = powers.sum(1)
        chosen = (shifted * wanted).sum(1) - sums.log()
        losses.append(-chosen.sum(0) * np.float64(np.float32(1 / SAMPLES)))
        slope = (powers / sums - wanted) * np.float64(np.float32(1 / SAMPLES))
        slope1 = (slope @ w2.T) * before.positive()
        w2 = w2 - (hidden.T @ slope) * RATE
        w1 = w1 - (x.T @ slope1) * RATE
    return losses
