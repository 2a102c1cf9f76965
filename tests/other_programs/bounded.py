# SPDX-License-Identifier: Apache-2.0
"""Values with a bound of their error: what a computation in FP32 may differ from the same in FP64.

Each operation of a program is at most one rounding per step away from exact (u = 2^-24), sums in any order, fused or
not; exp and log may besides be approximations with the errors that the PTX manual gives ex2.approx and lg2.approx.
Running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3), in FP64, for the inputs
at hand. Absolute term: 2^-149 where a product may underflow.
"""

import numpy as np

U = 2.0**-24
TINY = 2.0**-149
# PTX ISA 9.0: ex2.approx.f32 has a relative error of at most 2^-22; lg2.approx.f32 an absolute one of 2^-22 near 1, a
# relative one of 2^-22 elsewhere.
APPROXIMATE = 2.0**-22


def gamma(n):
    """n roundings in a row, any order of a sum of n + 1 summands."""
    return n * U / (1 - n * U)


class Bounded:
    """value (FP64) and error >= |what FP32 may have - value|, element by element."""

    __array_ufunc__ = None

    def __init__(self, value, error=None):
        self.value = np.asarray(value, np.float64)
        self.error = np.zeros_like(self.value) if error is None else np.asarray(error, np.float64)

    def _rounded(self, value, error):
        return Bounded(value, error + (np.abs(value) + error) * U + TINY)

    def __add__(self, other):
        other = lift(other)
        return self._rounded(self.value + other.value, self.error + other.error)

    def __neg__(self):
        return Bounded(-self.value, self.error)

    def __sub__(self, other):
        return self + -lift(other)

    def __rsub__(self, other):
        return lift(other) + -self

    def __mul__(self, other):
        other = lift(other)
        error = (np.abs(self.value) + self.error) * other.error + np.abs(other.value) * self.error
        return self._rounded(self.value * other.value, error)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other):
        """By multiplication with a rounded reciprocal or by one division: two roundings admit both."""
        other = lift(other)
        least = np.abs(other.value) - other.error
        assert np.all(least > 0), "a divisor may be zero"
        value = self.value / other.value
        error = (self.error + np.abs(value) * other.error) / least
        once = self._rounded(value, error)
        return self._rounded(value, once.error + np.abs(value) * APPROXIMATE)

    def __matmul__(self, other):
        other = lift(other)
        size = np.abs(self.value) + self.error
        error = size @ other.error + self.error @ np.abs(other.value)
        n = self.value.shape[-1]
        return Bounded(self.value @ other.value,
                       error + gamma(n) * (size @ (np.abs(other.value) + other.error)) + n * TINY)

    @property
    def T(self):
        return Bounded(self.value.T, self.error.T)

    def sum(self, axis):
        n = self.value.shape[axis]
        size = (np.abs(self.value) + self.error).sum(axis, keepdims=True)
        return Bounded(self.value.sum(axis, keepdims=True),
                       self.error.sum(axis, keepdims=True) + gamma(n) * size)

    def max(self, axis):
        return Bounded(self.value.max(axis, keepdims=True), self.error.max(axis, keepdims=True))

    def relu(self):
        return Bounded(np.maximum(self.value, 0), self.error)

    def positive(self):
        """1 where the value is positive, 0 where not; where that is open, either."""
        sure = np.abs(self.value) > self.error
        return Bounded(np.where(sure, self.value > 0, 0.5), np.where(sure, 0.0, 0.5))

    def exp(self):
        """By 2^(x log2 e): the product is rounded, and so is log2 e."""
        value = np.exp(self.value)
        inner = self.error + (np.abs(self.value) + self.error) * 3 * U
        error = (value + np.abs(value) * np.expm1(inner)) * (APPROXIMATE + 2 * U) + value * np.expm1(inner)
        return Bounded(value, error + TINY)

    def log(self):
        assert np.all(self.value > 2 * self.error), "a logarithm may be of zero"
        value = np.log(self.value)
        error = -np.log1p(-self.error / self.value)
        return Bounded(value, error + (APPROXIMATE + 4 * U) * np.maximum(1, np.abs(value)))

    def sqrt(self):
        """Rounded, or sqrt.approx with the relative error that the manual gives it; of something positive."""
        least = self.value - self.error
        assert np.all(least > 0), "a root may be of zero"
        value = np.sqrt(self.value)
        error = self.error / (value + np.sqrt(least))
        return Bounded(value, error + (value + error) * (APPROXIMATE + U))

    def holds(self, got):
        """Whether every element of `got` lies within the bound; false for NaN."""
        return bool(np.all(np.abs(np.asarray(got, np.float64) - self.value) <= self.error))


def lift(x):
    return x if isinstance(x, Bounded) else Bounded(x)
