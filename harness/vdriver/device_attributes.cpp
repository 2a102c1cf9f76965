// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/device_attributes.h"

#include <algorithm>
#include <map>

namespace gradguard::vdriver {
namespace {

int clamped(std::uint64_t value) { return static_cast<int>(std::min<std::uint64_t>(value, 0x7FFFFFFF)); }

constexpr int kLastAttribute = 147;

/// Attributes that do not depend on the configuration and are not 0.
const std::map<int, int>& fixed() {
    static const std::map<int, int> values{
        {9, 65536},                         // TOTAL_CONSTANT_MEMORY
        {10, 32},                           // WARP_SIZE
        {11, 0x7FFFFFFF},                   // MAX_PITCH
        {12, kRegistersPerMultiprocessor},  // MAX_REGISTERS_PER_BLOCK
        {13, 1410000},                      // CLOCK_RATE, kHz
        {14, 512},                          // TEXTURE_ALIGNMENT
        {15, 1},                            // GPU_OVERLAP
        {16, kMultiprocessors},
        {19, 1},         // CAN_MAP_HOST_MEMORY
        {30, 512},       // SURFACE_ALIGNMENT
        {31, 1},         // CONCURRENT_KERNELS
        {36, 1215000},   // MEMORY_CLOCK_RATE, kHz
        {37, 5120},      // GLOBAL_MEMORY_BUS_WIDTH
        {38, 41943040},  // L2_CACHE_SIZE
        {39, kThreadsPerMultiprocessor},
        {40, 2},   // ASYNC_ENGINE_COUNT
        {41, 1},   // UNIFIED_ADDRESSING
        {51, 32},  // TEXTURE_PITCH_ALIGNMENT
        {78, 1},   // STREAM_PRIORITIES_SUPPORTED
        {79, 1},   // GLOBAL_L1_CACHE_SUPPORTED
        {80, 1},   // LOCAL_L1_CACHE_SUPPORTED
        {82, kRegistersPerMultiprocessor},
        {83, 1},  // MANAGED_MEMORY
        {87, 2},  // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
        {90, 1},  // COMPUTE_PREEMPTION_SUPPORTED
        {95, 1},  // COOPERATIVE_LAUNCH
        {99, 1},  // HOST_REGISTER_SUPPORTED
        {106, kBlocksPerMultiprocessor},
        {111, kReservedShared},
        {115, 1},   // MEMORY_POOLS_SUPPORTED
        {126, 1},   // MEM_SYNC_DOMAIN_COUNT
        {131, -1},  // NUMA_ID
        {134, -1},  // HOST_NUMA_ID
    };
    return values;
}

}  // namespace

int shared_bytes_at_most(const Configuration& configuration) {
    return clamped(configuration.machine.limits.max_shared_bytes_per_block);
}
int shared_bytes_by_default(const Configuration& configuration) {
    return std::min(kSharedBytesByDefault, shared_bytes_at_most(configuration));
}
int shared_bytes_per_multiprocessor(const Configuration& configuration) {
    return shared_bytes_at_most(configuration) + kReservedShared;
}

std::optional<int> device_attribute(const Configuration& configuration, int attribute) {
    const vgpu::Limits& limits = configuration.machine.limits;
    switch (attribute) {
        case 1:
            return clamped(limits.max_threads_per_block);
        case 2:
            return clamped(limits.max_block.x);
        case 3:
            return clamped(limits.max_block.y);
        case 4:
            return clamped(limits.max_block.z);
        case 5:
            return clamped(limits.max_grid.x);
        case 6:
            return clamped(limits.max_grid.y);
        case 7:
            return clamped(limits.max_grid.z);
        case 8:
            return shared_bytes_by_default(configuration);
        case 75:
            return configuration.capability_major;
        case 76:
            return configuration.capability_minor;
        case 81:
            return shared_bytes_per_multiprocessor(configuration);
        case 97:
            return shared_bytes_at_most(configuration);
        default:
            break;
    }
    if (attribute < 1 || attribute > kLastAttribute || attribute == 139) return std::nullopt;
    const auto known = fixed().find(attribute);
    return known == fixed().end() ? 0 : known->second;
}

}  // namespace gradguard::vdriver
