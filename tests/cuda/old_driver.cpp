// SPDX-License-Identifier: Apache-2.0
// A library like the driver of CUDA 11.1, before there were memory pools: enough of it to be asked for its version.

extern "C" int cuInit(unsigned int) { return 0; }

extern "C" int cuDriverGetVersion(int* version) {
    *version = 11010;
    return 0;
}
