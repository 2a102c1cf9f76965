// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/vgpu/finding.h"

namespace gradguard::vgpu {

/// What the device grants; a launch beyond it is refused. Settable, so that "device limit" can be tested.
struct Limits {
    std::uint32_t max_threads_per_block = 1024;
    Dim3 max_block{1024, 1024, 64};
    Dim3 max_grid{2147483647, 65535, 65535};
    std::uint32_t max_shared_bytes_per_block = 232448;  ///< Static and dynamic together; what an H200 can be asked for.
    std::uint64_t max_memory_bytes = std::uint64_t{1} << 36;  ///< Of live allocations, mapped memory not counted.
};

/// Which compiled form of the instruction handlers runs. All give the same bits.
enum class VectorLevel : std::uint8_t { Best, Portable, Avx2, Avx512 };

const char* name_of(VectorLevel level);
/// Whether this processor (and this build) can run it; `Best` and `Portable` always.
bool is_supported(VectorLevel level);
/// The levels that are supported, without `Best`.
std::vector<VectorLevel> supported_vector_levels();

struct MachineOptions {
    /// Picks what PTX leaves open: order of blocks, warps and sides of a branch, when they are preempted, how many
    /// blocks are resident, which un-rounded mul and add are fused, and the poison. 0 is the plain order: one after the
    /// other, nothing fused.
    std::uint64_t seed = 0;
    Limits limits;
    /// Treats every FP32 instruction as if it carried .ftz.
    bool flush_subnormals = false;
    /// Runs approximate instructions (sqrt.approx, div.full, ...): the seed picks a value inside the manual's bound.
    /// Else a launch that has any is refused. Their module must be loaded with it too.
    bool allow_approximate = false;
    /// Warp instructions that one launch may execute before it ends with NoProgress.
    std::uint64_t instruction_budget = std::uint64_t{1} << 32;
    /// Warp instructions a path may run before others get a turn, so that who spins does not starve whom it waits for.
    std::uint32_t preemption_interval = 100'000;
    VectorLevel vector_level = VectorLevel::Best;
    /// Keeps the addresses below 2^48 for host memory that is mapped at its own address (Machine::map_in_place).
    bool host_addresses = false;
    /// Counts the executed instructions by kind (LaunchStats::instructions_by_kind), at some cost.
    bool count_by_kind = false;
};

/// What was executed, in dynamic counts.
struct Counters {
    std::uint64_t launches = 0;
    std::uint64_t blocks = 0;
    std::uint64_t lane_instructions = 0;  ///< PTX instructions times lanes that were active and not predicated off.
    std::uint64_t warp_instructions = 0;  ///< PTX instructions issued, predicated off or not.
    std::uint64_t barriers = 0;           ///< Completed barriers of blocks.
    std::uint64_t divergent_branches = 0;
    std::uint64_t global_bytes_read = 0;  ///< As requested by lanes; no sectors, no cache.
    std::uint64_t global_bytes_written = 0;

    Counters& operator+=(const Counters& other);
};

struct InstructionCount {
    std::string name;
    std::uint64_t lane_instructions = 0;
    std::uint64_t warp_instructions = 0;
};

/// One launch, as it ran.
struct LaunchStats {
    Counters counters;              ///< launches == 1.
    std::uint32_t fused_pairs = 0;  ///< Static pairs of mul and add that the seed fused.
    /// Approximate instructions of the kernel, executed or not, sorted.
    std::vector<std::string> approximate_instructions;
    /// By MachineOptions::count_by_kind, sorted by name.
    std::vector<InstructionCount> instructions_by_kind;
    /// Registers that instructions read, times lanes; 0 unless an observer watches registers.
    std::uint64_t register_reads = 0;
};

}  // namespace gradguard::vgpu
