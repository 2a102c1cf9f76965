# SPDX-License-Identifier: Apache-2.0
"""Norms beside the contract's: plain FP64, and bounds for the errors of FP32 sums, computed for the inputs at hand."""

import math
from fractions import Fraction

import numpy as np

from .statistics import ELEMENTS_PER_BLOCK, MAX_BLOCKS, THREADS, reciprocal

U = 2.0**-24  # half an FP32 unit in the last place of 1
SQUARE_UNIT = Fraction(1, 2**298)  # of exact_sum_of_squares()
# What this module's own FP64 operations may lose in one node of the tree, relative to the node's sum.
SLOP = 2.0**-50


def good_values(stored, gradient_scale):
    """[n] float32: the unscaled values of a StoredTensor, 0 for each bad one (contract section 4)."""
    with np.errstate(all="ignore"):
        raw = stored.values()
        value = raw * reciprocal(gradient_scale)
    return np.where(np.isfinite(raw) & np.isfinite(value), value, np.float32(0))


def fp64_norm(arrays):
    """L2 norm of float32 arrays in FP64, by another way than section 4: every square is exact in FP64 (48 bits between
    2^-298 and 2^256) and math.fsum rounds their sum once. Off by less than one FP64 unit: half from the sum's rounding,
    which the root halves, and half from the root's own."""
    squares = np.concatenate([np.square(np.asarray(a, np.float32).astype(np.float64)) for a in arrays] or [np.zeros(0)])
    return math.sqrt(math.fsum(squares))


def _merge(a, b):
    """Nodes (scale, real sum, error): section 4's merge and a bound for what it loses (five roundings at most)."""
    (scale_a, sum_a, error_a), (scale_b, sum_b, error_b) = a, b
    a_is_larger = scale_a >= scale_b
    sum_small, error_small = np.where(a_is_larger, sum_b, sum_a), np.where(a_is_larger, error_b, error_a)
    error_large = np.where(a_is_larger, error_a, error_b)
    four_roundings = (1 + U) ** 4 - 1
    rescaled = error_small + (sum_small + error_small) * four_roundings
    error_small = np.where(scale_a == scale_b, error_small, rescaled)
    total = sum_a + sum_b
    error = (error_large + error_small) * (1 + U) + U * total + SLOP * total
    untouched = (scale_a == 0) | (scale_b == 0)
    return (
        np.maximum(scale_a, scale_b),
        total,
        np.where(untouched, np.where(scale_b == 0, error_a, error_b), error),
    )


def _fold(nodes, blocks):
    lanes = blocks * THREADS
    count = len(nodes[0])
    rounds = -(-count // lanes)
    padded = [np.concatenate([part, np.zeros(rounds * lanes - count)]) for part in nodes]
    lane = tuple(np.zeros(lanes) for _ in nodes)
    for k in range(rounds):
        lane = _merge(lane, tuple(part[k * lanes : (k + 1) * lanes] for part in padded))
    tree = tuple(part.reshape(blocks, THREADS) for part in lane)
    offset = THREADS // 2
    while offset:
        tree = _merge(tuple(t[:, :offset] for t in tree), tuple(t[:, offset : 2 * offset] for t in tree))
        offset //= 2
    return tuple(part[:, 0] for part in tree)


def tree_error(values):
    """Greatest error that section 4's FP32 tree can make in scale^2 * sumsq of these finite float32 values, in FP64."""
    magnitude = np.abs(np.asarray(values, np.float32)).astype(np.float64)
    if not len(magnitude):
        return 0.0
    blocks = min(-(-len(magnitude) // ELEMENTS_PER_BLOCK), MAX_BLOCKS)
    nodes = _fold((magnitude, np.square(magnitude), np.zeros(len(magnitude))), blocks)
    if blocks > 1:
        nodes = _fold(nodes, 1)
    return float(nodes[2][0])


def norm_enclosure(stats, errors):
    """(lo, hi) of total_norm as Fractions of its square: the exact sum of squares, give or take the tensors'
    tree_error() and the host's roundings (one in each product, one in each addition) before the root's own."""
    exact = sum(s.exact_sum for s in stats.summaries if s is not None) * SQUARE_UNIT
    bound = sum((Fraction(e) for e in errors), Fraction(0))
    host = (exact + bound) * Fraction(len(errors) + 1, 2**53)
    root = Fraction(1, 2**53)
    low = max(exact - bound - host, Fraction(0)) * (1 - root) ** 2
    return low, (exact + bound + host) * (1 + root) ** 2


def any_order_factor(elements, tensors):
    """How much larger or smaller than the exact norm a norm can be that is taken in FP32 in whatever order: n squares
    and n - 1 additions in each tensor, the same for the tensors' norms; a root halves what is under it, and each root
    is given two roundings of its own."""
    return (1 + U) ** ((elements + tensors + 2) / 2 + 4)
