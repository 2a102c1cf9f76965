# SPDX-License-Identifier: Apache-2.0
"""Triton kernels: compiled by Triton, their PTX launched through the driver API.

triton_kernels.py adamw|softmax|sum_of_squares|race [APPROXIMATE]
Prints inputs and outputs as JSON.
"""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "programs/triton"))
from make import adamw, sum_of_squares  # noqa: E402, F401

N, BLOCK, WARPS = 1000, 256, 4


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def race(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Every block adds its sum to one place, and none of them by an atomic."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x * x, axis=0))


FLOATS = "*fp32"
KERNELS = {
    "adamw": (adamw, [FLOATS] * 4 + ["i32"] + ["fp32"] * 7),
    "softmax": (softmax, [FLOATS, FLOATS, "i32"]),
    "sum_of_squares": (sum_of_squares, [FLOATS, FLOATS, "i32"]),
    "race": (race, [FLOATS, FLOATS, "i32"]),
}


def compiled(name):
    function, types = KERNELS[name]
    names = function.arg_names
    source = ASTSource(function, dict(zip(names, [*types, "constexpr"], strict=True)), {"BLOCK": BLOCK})
    return triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": WARPS})


def main(name):
    from driver import Array, Driver  # needs a driver, which Triton's interpreter does without

    random = np.random.default_rng(1)
    result = compiled(name)
    driver = Driver()
    kernel = driver.kernel(result.asm["ptx"], name)
    given = [random.standard_normal(N).astype(np.float32) for _ in range(4)]
    given[2] = np.abs(given[2])
    if name == "adamw":
        floats = [1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001]
        arrays, blocks = [Array(a) for a in given], triton.cdiv(N, BLOCK)
        scalars = [ctypes.c_int32(N), *map(ctypes.c_float, floats)]
    elif name == "softmax":
        given = [given[0][:800].reshape(4, 200)]
        arrays, blocks = [Array(given[0]), Array(np.zeros_like(given[0]))], 4
        scalars = [ctypes.c_int32(200)]
    else:
        given = given[:1]
        blocks = triton.cdiv(N, BLOCK)
        arrays = [Array(given[0]), Array(np.zeros(blocks if name == "sum_of_squares" else 1, np.float32))]
        scalars = [ctypes.c_int32(N)]
    # Triton hands its kernels two more pointers: scratch memory that these do not use.
    scratch = [ctypes.c_uint64(0), ctypes.c_uint64(0)]
    driver.launch(kernel, blocks, 32 * WARPS, [*arrays, *scalars, *scratch], result.metadata.shared)
    print(json.dumps({"given": [a.tolist() for a in given], "got": [a.get().tolist() for a in arrays]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
