// SPDX-License-Identifier: Apache-2.0
// nvcc 13.0.88 folds ceil() of a constant of 2^63 or more to -2^63, at every level; NVRTC does not fold it. Found by
// tools/fuzz_compilers.py.
extern "C" __global__ void ceiling(double* out) { out[0] = ceil(7e20); }
