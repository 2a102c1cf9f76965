# SPDX-License-Identifier: Apache-2.0
"""A kernel of the user's own, compiled and launched by tinygrad: the sum of each block of 64 floats.

tinygrad_kernel.py right|no_barrier|no_guard
Prints the sums of 1, 2, ..., 100 as JSON.
"""

import array
import json
import sys

from tinygrad.device import Device, TinyELF
from tinygrad.dtype import dtypes

N, BLOCK = 100, 64
SOURCE = """
extern "C" __global__ void block_sums(float* out, const float* in) {
    __shared__ float part[64];
    int at = blockIdx.x * 64 + threadIdx.x;
    part[threadIdx.x] = GUARD ? in[at] : 0.0f;
    for (int width = 32; width > 0; width /= 2) {
        BARRIER;
        if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
"""


def main(variant):
    source = SOURCE.replace("GUARD", "true" if variant == "no_guard" else "at < 100")
    source = source.replace("BARRIER", "" if variant == "no_barrier" else "__syncthreads()")
    device = Device["CUDA"]
    device.compiler.compile_options.append("-lineinfo")
    signature = tuple((None, slot, dtypes.float, (size,)) for slot, size in enumerate((2, N)))
    library = device.compiler.compile(source)
    program = device.runtime(TinyELF(library, "block_sums", device.renderer.target, signature))
    out, given = device.allocator.alloc(8), device.allocator.alloc(4 * N)
    device.allocator._copyin(given, memoryview(array.array("f", range(1, N + 1))).cast("B"))
    program(out, given, global_size=(2, 1, 1), local_size=(BLOCK, 1, 1))
    result = bytearray(8)
    device.allocator._copyout(memoryview(result), out)
    print(json.dumps(list(array.array("f", bytes(result)))))


main(*sys.argv[1:])
