# SPDX-License-Identifier: Apache-2.0
"""Contract section 4: the statistics of a group, bit for bit, and the exact norm beside them."""

import math
from dataclasses import dataclass

import numpy as np

THREADS = 256
ELEMENTS_PER_BLOCK = 1024
MAX_BLOCKS = 1024
SUMMARY_BYTES = 12


@dataclass(frozen=True)
class TensorSummary:
    """scale, sumsq: float32; max_finite_abs: float32; first_bad: index or None; launches; scratch_bytes."""

    scale: np.float32
    sumsq: np.float32
    bad: bool
    max_finite_abs: np.float32
    first_bad: int | None
    elements: int
    launches: int
    scratch_bytes: int
    exact_sum: int  # of the good values, in units of 2^-298

    @property
    def square(self):
        """The tensor's term of the host's FP64 sum."""
        scale = float(self.scale)
        return (scale * scale) * float(self.sumsq)


@dataclass(frozen=True)
class GroupStats:
    total_norm: float
    exact_norm: float
    max_finite_abs: np.float32
    all_finite: bool
    elements: int
    tensors: int
    reduction_launches: int
    readback_bytes: int
    scratch_bytes: int
    summaries: list


def merge(scale_a, sum_a, scale_b, sum_b):
    """Merges pairs lane by lane; a pair of scale 0 leaves the other unchanged and nothing is divided."""
    a_is_larger = scale_a >= scale_b
    large = np.where(a_is_larger, scale_a, scale_b)
    small = np.where(a_is_larger, scale_b, scale_a)
    sum_large = np.where(a_is_larger, sum_a, sum_b)
    sum_small = np.where(a_is_larger, sum_b, sum_a)
    both = small > 0
    q = np.divide(small, large, out=np.zeros_like(small), where=both)
    merged = sum_large + sum_small * (q * q)
    return large, np.where(both, merged, sum_large)


def _tree(scale, sumsq):
    """[blocks, 256] pairs -> [blocks] pairs, offsets 128, 64, ..., 1."""
    offset = THREADS // 2
    while offset:
        low, high = slice(0, offset), slice(offset, 2 * offset)
        scale, sumsq = merge(scale[:, low], sumsq[:, low], scale[:, high], sumsq[:, high])
        offset //= 2
    return scale[:, 0], sumsq[:, 0]


def _serial_then_tree(scale, sumsq, blocks):
    """Lane t of block b folds the pairs b*256 + t + k*256*blocks for k = 0, 1, ... from (0, 0), then the tree."""
    lanes = blocks * THREADS
    rounds = -(-len(scale) // lanes)
    padded_scale = np.zeros(rounds * lanes, np.float32)
    padded_sumsq = np.zeros(rounds * lanes, np.float32)
    padded_scale[: len(scale)], padded_sumsq[: len(scale)] = scale, sumsq
    lane_scale, lane_sumsq = np.zeros(lanes, np.float32), np.zeros(lanes, np.float32)
    for k in range(rounds):
        span = slice(k * lanes, (k + 1) * lanes)
        lane_scale, lane_sumsq = merge(lane_scale, lane_sumsq, padded_scale[span], padded_sumsq[span])
    return _tree(lane_scale.reshape(blocks, THREADS), lane_sumsq.reshape(blocks, THREADS))


def reciprocal(gradient_scale):
    """r of section 4, in FP32."""
    return np.float32(1) / np.float32(gradient_scale)


def exact_sum_of_squares(magnitudes):
    """The exact sum of squares of finite float32 magnitudes, as an integer in units of 2^-298."""
    bits = magnitudes.view(np.uint32)
    exponent = (bits >> 23).astype(np.int64)
    mantissa = (bits & 0x7FFFFF).astype(np.uint64) | np.where(exponent > 0, np.uint64(1 << 23), np.uint64(0))
    shift = np.maximum(exponent - 1, 0)  # the value is mantissa * 2^(shift - 149)
    square = mantissa * mantissa  # below 2^48
    # Weights below 2^24 and fewer than 2^29 elements: each FP64 bin of bincount stays an exact integer.
    low = np.bincount(shift, weights=(square & 0xFFFFFF).astype(np.float64))
    high = np.bincount(shift, weights=(square >> np.uint64(24)).astype(np.float64))
    return sum((int(low[s]) + (int(high[s]) << 24)) << (2 * s) for s in range(len(low)))


def root_to_float64(exact_sum):
    """sqrt(exact_sum * 2^-298) rounded once to FP64."""
    if exact_sum == 0:
        return 0.0
    shift = max(0, 130 - exact_sum.bit_length())
    shift += shift % 2
    root = math.isqrt(exact_sum << shift)  # at least 65 bits, so a sticky bit below them settles every tie
    inexact = root * root != exact_sum << shift
    return _round_scaled((root << 1) | inexact, -149 - shift // 2 - 1)


def _round_scaled(mantissa, exponent):
    excess = mantissa.bit_length() - 53
    kept, rest, half = mantissa >> excess, mantissa & ((1 << excess) - 1), 1 << (excess - 1)
    if rest > half or (rest == half and kept & 1):
        kept += 1
    return math.ldexp(float(kept), exponent + excess)  # norms lie in 2^-149 .. 2^160: no subnormal FP64


def summarize(stored, gradient_scale):
    """Summary of one StoredTensor of gradients; None for an empty one."""
    raw = stored.values()
    count = len(raw)
    if count == 0:
        return None
    with np.errstate(all="ignore"):
        value = raw * reciprocal(gradient_scale)
        bad = ~(np.isfinite(raw) & np.isfinite(value))
        magnitude = np.where(bad, np.float32(0), np.abs(value))
        ones = np.where(magnitude > 0, np.float32(1), np.float32(0))
        blocks = min(-(-count // ELEMENTS_PER_BLOCK), MAX_BLOCKS)
        scale, sumsq = _serial_then_tree(magnitude, ones, blocks)
        if blocks > 1:
            scale, sumsq = _serial_then_tree(scale, sumsq, 1)
    assert scale.dtype == np.float32 and sumsq.dtype == np.float32
    second = blocks > 1
    return TensorSummary(
        scale=scale[0],
        sumsq=sumsq[0],
        bad=bool(bad.any()),
        max_finite_abs=magnitude.max(),
        first_bad=int(np.argmax(bad)) if bad.any() else None,
        elements=count,
        launches=1 + second,
        scratch_bytes=SUMMARY_BYTES * (blocks + second),
        exact_sum=exact_sum_of_squares(magnitude),
    )


def group_stats(gradients, gradient_scale):
    """GroupStats of a list of StoredTensor in input order (empty ones included)."""
    summaries = [summarize(stored, gradient_scale) for stored in gradients]
    live = [summary for summary in summaries if summary is not None]
    total = 0.0
    for summary in live:
        total += summary.square
    finite = not any(summary.bad for summary in live)
    return GroupStats(
        total_norm=math.sqrt(total) if finite else math.inf,
        exact_norm=root_to_float64(sum(s.exact_sum for s in live)) if finite else math.inf,
        max_finite_abs=max((s.max_finite_abs for s in live), default=np.float32(0)),
        all_finite=finite,
        elements=sum(s.elements for s in live),
        tensors=len(summaries),
        reduction_launches=sum(s.launches for s in live),
        readback_bytes=SUMMARY_BYTES * len(live),
        scratch_bytes=sum(s.scratch_bytes for s in live),
        summaries=summaries,
    )
