# SPDX-License-Identifier: Apache-2.0
"""Generated groups for the tests: values by float class, sizes that straddle the geometry's constants."""

import numpy as np

from gradguard_oracle.float32 import BITS_TYPE
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import Entry
from gradguard_oracle.update import State

# Patterns at the edges of each format that are finite: zeros, subnormals, least normals, neighbours of one, greatest.
EDGES = {
    "F32": [
        0,
        0x80000000,
        1,
        0x007FFFFF,
        0x00800000,
        0x00800001,
        0x3F7FFFFF,
        0xBF800001,
        0x5F7FFFFF,
        0xDF800000,
        0x7F7FFFFF,
    ],
    "F16": [0, 0x8000, 1, 0x03FF, 0x0400, 0x0401, 0x3BFF, 0xBC01, 0x7BFF],
    "BF16": [0, 0x8000, 1, 0x007F, 0x0080, 0x0081, 0x3F7F, 0xBF81, 0x5F7F, 0x7F7F],
}


def stored(values, dtype, shape):
    """float32 values rounded to the dtype (BF16 by dropping bits, which is as good a value as any)."""
    if dtype == "F32":
        bits = values.astype(np.float32).view(np.uint32)
    elif dtype == "F16":
        bits = values.astype(np.float16).view(np.uint16)
    else:
        bits = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return StoredTensor(dtype, shape, bits)


def ordinary(rng, dtype, shape, size=1.0):
    """Normal values of the given standard deviation."""
    with np.errstate(over="ignore"):
        return stored(rng.normal(scale=size, size=int(np.prod(shape, dtype=int))), dtype, shape)


def edges(rng, dtype, shape):
    """Every edge pattern, repeated in a shuffled order."""
    count = int(np.prod(shape, dtype=int))
    return StoredTensor(dtype, shape, rng.permutation(np.resize(np.array(EDGES[dtype], BITS_TYPE[dtype]), count)))


def parameters(rng, name, shape, step=None, amsgrad=False):
    """An Entry with ordinary parameters and, for a step, moments as a training run has them (v >= 0, max >= 0)."""
    count = int(np.prod(shape, dtype=int))

    def normal():
        return rng.normal(size=count).astype(np.float32)

    state = None
    if step is not None:
        state = State(step, normal(), np.square(normal()), np.square(normal()) if amsgrad else None)
    return Entry(name, shape, normal(), state)
