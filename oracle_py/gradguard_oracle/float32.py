# SPDX-License-Identifier: Apache-2.0
"""FP32 as the contract means it: bits, widening, exact parsing of text, and one-rounding FMA."""

import re
from fractions import Fraction

import numpy as np

DTYPE_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
# F32 carries bits as uint32, the half formats as uint16: BF16 has no NumPy type of its own.
BITS_TYPE = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16}

_HEX = re.compile(r"^([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)(?:[pP]([+-]?\d+))?$")
_EXTREME = {"inf": np.inf, "infinity": np.inf, "nan": np.nan}


def require_kept_subnormals():
    """Refuses to judge anything in a process that flushes subnormals (a fast-math library can switch that on)."""
    least = np.array([1], np.uint32).view(np.float32)
    halved_normal = np.array([0x00800000], np.uint32).view(np.float32) * np.float32(0.5)
    if not least[0] > 0 or not halved_normal[0] > 0:
        raise RuntimeError("this process flushes subnormals to zero: the oracle cannot judge FP32 results here")


def widen(bits, dtype):
    """float32 value of each stored pattern (contract section 4: raw = float32(g)); exact for every finite one."""
    if dtype == "F32":
        return bits.view(np.float32)
    if dtype == "F16":
        return bits.view(np.float16).astype(np.float32)
    if dtype == "BF16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    raise ValueError(f"dtype {dtype} is none of F32, F16, BF16")


def bits_of(values):
    """uint32 patterns of float32 values."""
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def same_bits(a, b):
    """Element by element: equal patterns, any NaN being equal to any NaN (contract section 6)."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return (bits_of(a) == bits_of(b)) | (np.isnan(a) & np.isnan(b))


def nearest_float32(value):
    """A Fraction rounded once to the nearest float32, ties to even; infinite from 2^128 - 2^103 up."""
    sign, value = (-1, -value) if value < 0 else (1, value)
    if value == 0:
        return np.float32(0)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    unit = max(exponent - 23, -149)
    count = round(value / Fraction(2) ** unit)  # Fraction rounds ties to even
    if Fraction(count) * Fraction(2) ** unit >= Fraction(2) ** 128:
        return np.float32(sign * np.inf)
    return np.float32(sign * float(count) * 2.0**unit)  # both factors and the product are exact in FP64


def float32_from_text(text):
    """Decimal or hexadecimal text to the nearest float32 in one rounding (never through FP64)."""
    text = text.strip()
    unsigned = text.lstrip("+-").lower()
    if unsigned in _EXTREME:
        return np.float32(-_EXTREME[unsigned] if text.startswith("-") else _EXTREME[unsigned])
    match = _HEX.match(text)
    if match and (match.group(2) or match.group(3)):
        sign, whole, part, power = match.groups()
        value = Fraction(int(whole + part, 16)) * Fraction(2) ** (int(power or 0) - 4 * len(part))
        value = -value if sign == "-" else value
    else:
        value = Fraction(text)
    result = nearest_float32(value)
    return np.float32(-0.0) if value == 0 and text.startswith("-") else result


def fma(a, b, c):
    """a*b + c with one rounding, for float32 arrays.

    The product of two float32 is exact in FP64. The sum is taken to FP64 rounded to odd (nearest, then moved
    to the odd neighbour on the side of the error), so that the final cast to float32 rounds the exact value once.
    """
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    addend = np.asarray(c, np.float64)
    product, addend = np.broadcast_arrays(product, addend)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)  # TwoSum: exact, nothing here over- or underflows
    even = (total.view(np.int64) & 1) == 0
    adjust = np.isfinite(total) & even & (error != 0)
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(adjust, odd, total).astype(np.float32)


def ulps_between(a, b):
    """Element by element: how many FP32 numbers further b is than a, across binades, subnormals and signs; +0 and -0
    are one number. uint32; NaN against NaN is 0, against anything else the greatest uint32."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)

    def place(values):
        bits = bits_of(values).astype(np.int64)
        return np.where(bits >> 31 == 0, bits, -(bits & 0x7FFFFFFF))

    distance = np.abs(place(a) - place(b)).astype(np.uint32)
    one_is_nan = np.isnan(a) | np.isnan(b)
    both_are_nan = np.isnan(a) & np.isnan(b)
    return np.where(one_is_nan, np.where(both_are_nan, np.uint32(0), np.uint32(0xFFFFFFFF)), distance)
