# SPDX-License-Identifier: Apache-2.0
"""PyCUDA: arrays there and back, a module of PTX, its reductions and scans. Prints results as JSON.

pycuda_arrays.py module|reduction
pycuda_arrays.py scan ELEMENTS
"""

import json
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.compiler
import pycuda.driver as driver
import pycuda.gpuarray as gpuarray

# PyCUDA asks nvcc for machine code, which a virtual GPU cannot run; PTX is what it can be asked for as well.
compile_for_hardware = pycuda.compiler.compile


def compile_to_ptx(*arguments, **options):
    return compile_for_hardware(*arguments, **{**options, "target": "ptx"})


pycuda.compiler.compile = compile_to_ptx
N = 3000


def module():
    code = compile_to_ptx("""
        extern "C" __global__ void scale(float *x, float a, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] *= a;
        }""", options=["-arch=compute_80"], no_extern_c=True)
    scale = driver.module_from_buffer(code).get_function("scale")
    x = gpuarray.to_gpu(np.arange(N, dtype=np.float32))
    scale(x, np.float32(3), np.int32(N), grid=(12, 1), block=(256, 1, 1))
    return bool(np.array_equal(x.get(), 3 * np.arange(N, dtype=np.float32)))


def reduction():
    x = gpuarray.to_gpu(np.arange(N, dtype=np.float32))
    return [float(gpuarray.sum(x).get()), float(gpuarray.max(x).get()), float(gpuarray.dot(x, x).get())]


def scan(elements):
    from pycuda.scan import InclusiveScanKernel

    given = np.arange(int(elements), dtype=np.int32)
    x = gpuarray.to_gpu(given)
    InclusiveScanKernel(np.int32, "a+b")(x)
    return bool(np.array_equal(x.get(), np.cumsum(given)))


print(json.dumps({"module": module, "reduction": reduction, "scan": scan}[sys.argv[1]](*sys.argv[2:])))
