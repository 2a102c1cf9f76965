// SPDX-License-Identifier: Apache-2.0
#include "bench/device/params.h"
#include "reference/contract/constants.h"

/// The yardstick of bandwidth: every byte read once and written once, in words of 16 bytes.
namespace gradguard::bench {

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) copy_words(CopyArguments arguments) {
    const uint4* source = reinterpret_cast<const uint4*>(arguments.source);
    uint4* destination = reinterpret_cast<uint4*>(arguments.destination);
    const unsigned int stride = kThreadsPerBlock * gridDim.x;
    for (unsigned int i = blockIdx.x * kThreadsPerBlock + threadIdx.x; i < arguments.words; i += stride) {
        destination[i] = source[i];
    }
}

}  // namespace gradguard::bench
