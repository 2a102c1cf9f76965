// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "harness/vdriver/device_attributes.h"
#include "harness/vdriver/export.h"
#include "harness/vdriver/functions.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

constexpr int kWarp = 32;
constexpr std::uint64_t kSharedGranule = 128;

/// Blocks that a multiprocessor of the figures in device_attributes.h holds at once: limited by threads, blocks and
/// shared memory; by registers nothing is, see NUM_REGS.
int blocks_per_multiprocessor(Driver& driver, const Function& kernel, int block_size, std::size_t dynamic_shared) {
    const int most = attribute_of(driver, kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    if (block_size > most || dynamic_shared > dynamic_shared_limit(driver, kernel)) return 0;
    const int threads = (block_size + kWarp - 1) / kWarp * kWarp;
    int blocks = std::min(kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / threads);
    const std::uint64_t used = kernel.entry->static_shared_bytes + dynamic_shared + kReservedShared;
    const std::uint64_t shared = (used + kSharedGranule - 1) / kSharedGranule * kSharedGranule;
    const auto available = static_cast<std::uint64_t>(shared_bytes_per_multiprocessor(driver.configuration));
    return std::min(blocks, static_cast<int>(available / shared));
}

CUresult max_active(const char* name, int* blocks, CUfunction handle, int block_size, std::size_t dynamic_shared,
                    unsigned flags) {
    return initialized(name, [&](Driver& driver) {
        require(blocks != nullptr && block_size > 0 && flags <= 1);
        *blocks = blocks_per_multiprocessor(driver, *function(driver, handle), block_size, dynamic_shared);
    });
}

/// The block size of most threads at once on a multiprocessor, the largest of several.
CUresult best_block(const char* name, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                    std::size_t dynamic_shared, int limit, unsigned flags) {
    return initialized(name, [&](Driver& driver) {
        require(grid != nullptr && block != nullptr && limit >= 0 && flags <= 1);
        const std::shared_ptr<Function> kernel = function(driver, handle);
        int most = attribute_of(driver, *kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        if (limit > 0) most = std::min(most, limit);
        int best_threads = 0, best_size = 0, best_blocks = 0;
        for (int size = most; size > 0; size = size % kWarp == 0 ? size - kWarp : size / kWarp * kWarp) {
            const std::size_t shared = shared_of != nullptr ? shared_of(size) : dynamic_shared;
            const int blocks = blocks_per_multiprocessor(driver, *kernel, size, shared);
            if (blocks * size > best_threads) best_threads = blocks * size, best_size = size, best_blocks = blocks;
        }
        require(best_size > 0);
        *block = best_size;
        *grid = best_blocks * kMultiprocessors;
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                                 std::size_t dynamic_shared) {
    return max_active(__func__, blocks, function, block_size, dynamic_shared, 0);
}

GRADGUARD_DRIVER_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                          int block_size, std::size_t dynamic_shared,
                                                                          unsigned flags) {
    return max_active(__func__, blocks, function, block_size, dynamic_shared, flags);
}

GRADGUARD_DRIVER_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                      CUoccupancyB2DSize shared_of, std::size_t dynamic_shared,
                                                      int limit) {
    return best_block(__func__, grid, block, function, shared_of, dynamic_shared, limit, 0);
}

GRADGUARD_DRIVER_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                               CUoccupancyB2DSize shared_of, std::size_t dynamic_shared,
                                                               int limit, unsigned flags) {
    return best_block(__func__, grid, block, function, shared_of, dynamic_shared, limit, flags);
}

GRADGUARD_DRIVER_API cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction handle, int blocks,
                                                             int block_size) {
    return initialized(__func__, [&](Driver& driver) {
        require(bytes != nullptr && blocks > 0 && block_size > 0);
        const std::shared_ptr<Function> kernel = function(driver, handle);
        const auto all = static_cast<std::uint64_t>(shared_bytes_per_multiprocessor(driver.configuration));
        const std::uint64_t each = all / static_cast<std::uint64_t>(blocks) / kSharedGranule * kSharedGranule;
        const std::uint64_t taken = kernel->entry->static_shared_bytes + kReservedShared;
        *bytes = std::min<std::uint64_t>(each > taken ? each - taken : 0, dynamic_shared_limit(driver, *kernel));
    });
}
