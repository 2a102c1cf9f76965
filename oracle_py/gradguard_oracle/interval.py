# SPDX-License-Identifier: Apache-2.0
"""Intervals that hold whatever FP32 makes of a formula, contracted or not: ends in FP64, each operation widened.

An operation is widened by half a unit in the last place, relative 2^-24 and absolute 2^-150, and a little more for what
FP64 loses itself; the unrounded value stays inside, so a fused operation is covered. Inputs from which FP32 could
overflow are refused: PyTorch is no oracle for them.
"""

import numpy as np

_MORE = 1 + 2.0**-20  # pays for the FP64 roundings here: a few of 2^-53 against 2^-44
RELATIVE, ABSOLUTE = 2.0**-24 * _MORE, 2.0**-150 * _MORE
FLT_MAX = float(np.finfo(np.float32).max)


class Interval:
    """[lo, hi] for each element; float64 arrays of one shape."""

    def __init__(self, lo, hi):
        self.lo, self.hi = np.asarray(lo, np.float64), np.asarray(hi, np.float64)
        if not (
            np.all(self.lo <= self.hi) and np.all(np.abs(self.lo) <= FLT_MAX) and np.all(np.abs(self.hi) <= FLT_MAX)
        ):
            raise ValueError("an interval's ends must be ordered and within FP32's range")

    @staticmethod
    def of(value):
        """One that holds a float32 value or array and nothing else; an interval as it is."""
        return value if isinstance(value, Interval) else Interval(value, value)

    @staticmethod
    def hull(*parts):
        return Interval(np.minimum.reduce([p.lo for p in parts]), np.maximum.reduce([p.hi for p in parts]))

    def rounded(self):
        """After one more rounding to FP32."""
        return Interval(
            self.lo - (np.abs(self.lo) * RELATIVE + ABSOLUTE), self.hi + (np.abs(self.hi) * RELATIVE + ABSOLUTE)
        )

    def __neg__(self):
        return Interval(-self.hi, -self.lo)

    def __add__(self, other):
        other = Interval.of(other)
        return Interval(self.lo + other.lo, self.hi + other.hi).rounded()

    def __sub__(self, other):
        return self + -Interval.of(other)

    def _ends(self, other, operation):
        other = Interval.of(other)
        ends = [operation(a, b) for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        return Interval(np.minimum.reduce(ends), np.maximum.reduce(ends)).rounded()

    def __mul__(self, other):
        return self._ends(other, np.multiply)

    def __truediv__(self, other):
        if np.any(Interval.of(other).lo <= 0):
            raise ValueError("division by an interval that is not positive")
        return self._ends(other, np.divide)

    def sqrt(self):
        return Interval(np.sqrt(np.maximum(self.lo, 0)), np.sqrt(np.maximum(self.hi, 0))).rounded()

    def contains(self, values):
        """[n] bool; never for a NaN."""
        values = np.asarray(values, np.float64)
        return (self.lo <= values) & (values <= self.hi)


def cast_to_float32(lo, hi):
    """An FP64 coefficient known to lie in [lo, hi], as it is and cast to FP32."""
    return Interval.hull(Interval(lo, hi), Interval(np.float32(lo), np.float32(hi)))


def maximum(old, new):
    """Exact: old float32, new an Interval."""
    return Interval(np.maximum(old, new.lo), np.maximum(old, new.hi))
