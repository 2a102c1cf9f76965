# SPDX-License-Identifier: Apache-2.0
"""Valid groups from a seeded generator: values by float class, sizes that straddle the geometry's constants."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from gradguard_oracle.float32 import BITS_TYPE
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import Entry
from gradguard_oracle.update import Options, State

SMALL = [0, 1, 2, 3, 5, 17, 31, 32, 33, 40]
STRADDLING = [255, 256, 257, 511, 513, 1023, 1024, 1025]
TWO_STAGES = [1026, 2047, 2048, 2049, 3333, 5000]
STEPS = [1, 2, 3, 9, 255, 256, 1000, 2**24 - 1, 2**24, 2**24 + 1, 2**53 + 1, 2**64 - 2]
SCALES = [1.0, 2.0, 3.0, 5.0, 10.0, 1024.0, 65536.0, 2.0**-10, 2.0**-112, 2.0**-127, 2.0**120, 3.4e38]
# sqrt(FLT_MAX), 2^-63 and 2^52.
THRESHOLDS = (0x5F7FFFFF, 0x20000000, 0x59800000)
# Exponent bits and mantissa bits of each format.
EXPONENTS = {"F32": (8, 23), "F16": (5, 10), "BF16": (8, 7)}
FILLS = ["ordinary", "wide", "edges", "zeros", "subnormal", "huge"]


@dataclass(frozen=True)
class Group:
    """What one guarded step gets. gradients: StoredTensor in the entries' order."""

    entries: list
    gradients: list
    scale: np.float32
    options: Options


def edges(dtype):
    """Finite patterns at the format's edges: zeros, subnormals, least normal, around one, thresholds, greatest."""
    exponent_bits, mantissa_bits = EXPONENTS[dtype]
    least = 1 << mantissa_bits
    one = ((1 << (exponent_bits - 1)) - 1) << mantissa_bits
    infinite = ((1 << exponent_bits) - 1) << mantissa_bits
    patterns = [0, 1, least - 1, least, least + 1, one - 1, one, one + 1, infinite - 1]
    if dtype != "F16":
        shift = 23 - mantissa_bits
        patterns += [(center >> shift) + off for center in THRESHOLDS for off in (-1, 0, 1)]
    sign = 1 << (exponent_bits + mantissa_bits)
    return np.array(patterns + [sign | p for p in patterns], BITS_TYPE[dtype])


def bad_patterns(dtype):
    """Infinities of both signs and NaNs with payloads."""
    exponent_bits, mantissa_bits = EXPONENTS[dtype]
    infinite = ((1 << exponent_bits) - 1) << mantissa_bits
    sign = 1 << (exponent_bits + mantissa_bits)
    nans = [infinite | 1, infinite | (1 << (mantissa_bits - 1)) | 5]
    return np.array([infinite, sign | infinite, nans[0], sign | nans[1]], BITS_TYPE[dtype])


def values(rng, dtype, count, fill):
    """[count] finite patterns of the class `fill`."""
    exponent_bits, mantissa_bits = EXPONENTS[dtype]
    bias, greatest = (1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 2
    if fill == "edges":
        return rng.choice(edges(dtype), count)
    low, high = {
        "ordinary": (bias - 4, bias + 3),
        "wide": (0, greatest + 1),
        "zeros": (0, 1),
        "subnormal": (0, 2),
        "huge": (greatest - 3, greatest + 1),
    }[fill]
    exponent = rng.integers(low, high, count)
    mantissa = rng.integers(0, 1 << mantissa_bits, count) if fill != "zeros" else np.zeros(count, np.int64)
    sign = rng.integers(0, 2, count)
    word = (sign << (exponent_bits + mantissa_bits)) | (exponent << mantissa_bits) | mantissa
    return word.astype(BITS_TYPE[dtype])


def gradients(rng, count, bad):
    """A StoredTensor of one class; `bad`: one element in it becomes NaN or infinite."""
    dtype = str(rng.choice(["F32", "F16", "BF16"]))
    fill = str(rng.choice(FILLS, p=[0.4, 0.2, 0.2, 0.05, 0.05, 0.1]))
    bits = values(rng, dtype, count, fill)
    if bad and count:
        bits[rng.integers(count)] = rng.choice(bad_patterns(dtype))
    return StoredTensor(dtype, (count,), bits), fill


def _f32(rng, count, fill):
    return values(rng, "F32", count, fill).view(np.float32)


def state(rng, count, amsgrad):
    """Moments as training has them, and now and then anything at all: they are not checked (contract section 6)."""
    fill = str(rng.choice(["ordinary", "wide", "edges"], p=[0.8, 0.1, 0.1]))
    first, second, greatest = (_f32(rng, count, fill) for _ in range(3))
    if fill == "ordinary":
        second, greatest = np.square(second), np.square(greatest)
    elif count and rng.random() < 0.5:
        second[rng.integers(count)] = np.float32(rng.choice([np.nan, np.inf]))
    return State(int(rng.choice(np.array(STEPS, object))), first, second, greatest if amsgrad else None)


def _one_of(rng, *choices):
    return np.float32(choices[rng.integers(len(choices))])


def options(rng):
    """Valid options: the defaults, ordinary ones, and the ends of the ranges."""
    chosen = Options(amsgrad=bool(rng.integers(2)), maximize=bool(rng.integers(2)))
    if rng.random() < 0.2:
        return chosen
    below_one = np.nextafter(np.float32(1), np.float32(0))
    max_norm = rng.integers(8)
    return replace(
        chosen,
        learning_rate=_one_of(rng, 0, 1e-4, 1e-3, 0.1, 0.5, rng.random(), 2.0**-60),
        beta1=_one_of(rng, 0, 0.5, 0.8, 0.9, 0.95, rng.random() * 0.99, below_one),
        beta2=_one_of(rng, 0, 0.5, 0.9, 0.99, 0.999, rng.random() * 0.99, below_one),
        epsilon=_one_of(rng, 1e-8, 1e-5, 1e-3, 0.25, rng.random() + 1e-3, 2.0**-149),
        weight_decay=_one_of(rng, 0, 1e-4, 0.01, 0.1, 0.3, rng.random()),
        max_norm=None if max_norm == 0 else _one_of(rng, 0, -0.0, 1, 1, 0.1, 2.0 ** rng.integers(-60, 60), 1e38),
        guard_epsilon=_one_of(rng, 1e-6, 1e-3, 2.0**-140, rng.random() + 1e-3),
    )


def group(rng):
    """-> (Group, classes that it has)."""
    chosen = options(rng)
    count = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    kind = rng.choice(["small", "straddling", "two stages"], p=[0.86, 0.09, 0.05])
    sizes = {"small": SMALL, "straddling": STRADDLING, "two stages": TWO_STAGES}[str(kind)]
    bad = rng.random() < 0.08
    classes, entries, stored = Counter({str(kind): 1}), [], []
    for index in range(count):
        size = int(rng.choice(sizes if index == 0 else SMALL))
        tensor, fill = gradients(rng, size, bad and index == count - 1)
        stored.append(tensor)
        before = state(rng, size, chosen.amsgrad) if rng.random() < 0.7 else None
        parameters = _f32(rng, size, str(rng.choice(["ordinary", "edges"], p=[0.9, 0.1])))
        entries.append(Entry(f"e{index}", (size,), parameters, before))
        classes.update([tensor.dtype, fill, "later step" if before else "first step"])
    scale = np.float32(rng.choice(SCALES, p=[0.3] + [0.7 / (len(SCALES) - 1)] * (len(SCALES) - 1)))
    if rng.random() < 0.7 and scale > 1e30:
        scale = np.float32(1)
    classes.update([name for name in ("amsgrad", "maximize") if getattr(chosen, name)])
    return Group(entries, stored, scale, chosen), classes
