# SPDX-License-Identifier: Apache-2.0
"""As much of the CUDA driver API as launching a kernel takes, by ctypes."""

import ctypes

import numpy as np

CUDA = ctypes.CDLL("libcuda.so.1")


def check(name, *arguments):
    result = getattr(CUDA, name)(*arguments)
    if result != 0:
        text = ctypes.c_char_p()
        CUDA.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")


class Array:
    """A NumPy array's copy on the device."""

    def __init__(self, values):
        self.like = np.ascontiguousarray(values)
        self.address = ctypes.c_uint64()
        check("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.like.nbytes))
        check("cuMemcpyHtoD_v2", self.address, self.like.ctypes.data_as(ctypes.c_void_p),
              ctypes.c_size_t(self.like.nbytes))

    def get(self):
        result = np.empty_like(self.like)
        check("cuMemcpyDtoH_v2", result.ctypes.data_as(ctypes.c_void_p), self.address, ctypes.c_size_t(result.nbytes))
        return result

    def free(self):
        check("cuMemFree_v2", self.address)


class Driver:
    def __init__(self):
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        check("cuInit", 0)
        check("cuDeviceGet", ctypes.byref(device), 0)
        check("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        check("cuCtxSetCurrent", self.context)

    def kernel(self, ptx, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        check("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
        check("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, grid, threads, arguments, shared_bytes=0):
        """arguments: Array, or a ctypes value."""
        values = [a.address if isinstance(a, Array) else a for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        check("cuLaunchKernel", function, grid, 1, 1, threads, 1, 1, shared_bytes, None, pointers, None)
        check("cuCtxSynchronize")
