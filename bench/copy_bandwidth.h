// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/host/tensor.h"

namespace gradguard::bench {

/// Copies `source` to `destination`, both of the same size, a multiple of 16 bytes, by the module "copy"
/// (with_bench_kernels()). Asynchronous. Throws Error.
void submit_copy(const Tensor& source, const Tensor& destination);

/// What a plain copy of device memory reaches on the same device in the same run.
struct CopyBandwidth {
    std::uint64_t copied_bytes = 0;   ///< By each sample; it moves twice as many, once read and once written.
    std::vector<double> seconds;      ///< Raw samples.
    bool by_device_clock = false;     ///< Else by the wall clock, submission and synchronisation included.
    double bytes_per_second() const;  ///< Moved, in the median sample.
};

/// A measurement over `bytes` (rounded up to 16) of memory: one copy to warm up, then `samples`. Throws Error.
CopyBandwidth measure_copy(const std::shared_ptr<Queue>& queue, std::uint64_t bytes, std::uint64_t samples = 9);

}  // namespace gradguard::bench
