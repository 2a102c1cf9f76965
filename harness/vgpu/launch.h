// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/vgpu/decode/program.h"
#include "harness/vgpu/error.h"
#include "harness/vgpu/exec/launch_rows.h"
#include "harness/vgpu/finding_log.h"
#include "harness/vgpu/memory.h"
#include "harness/vgpu/observer.h"
#include "harness/vgpu/options.h"
#include "harness/vgpu/random.h"
#include "harness/vgpu/warp.h"

namespace gradguard::vgpu {

/// A barrier of a block, by its number.
struct Barrier {
    std::uint32_t waiting_threads = 0;
    std::uint32_t thread_count = 0;     ///< Named by the instruction; 0: all threads that have not exited.
    std::uint32_t arrived_threads = 0;  ///< By bar.arrive, which does not wait.
    std::uint32_t true_predicates = 0;  ///< bar.red: of the threads that wait.
    std::uint32_t predicates = 0;
};

inline constexpr std::uint32_t kBarriers = 16;
/// WaitingPath::barrier of lanes that wait for others of their warp.
inline constexpr std::uint32_t kWarpBarrier = 1000;

/// A block that is resident: its warps, their registers and its shared memory.
struct BlockRun {
    std::uint64_t index = 0;
    bool fresh = true;  ///< No block has run in it yet.
    std::vector<Warp> warps;
    AlignedBytes frames;
    AlignedBytes shared;
    AlignedBytes local;
    // Values that nobody wrote (Warp::undefined and what follows there), and memory that holds such.
    std::vector<std::uint32_t> undefined;
    std::vector<std::uint64_t> undefined_bits;
    std::vector<std::uint32_t> copied;
    std::vector<std::uint32_t> origins;
    std::vector<std::uint8_t> local_undefined;  ///< By byte of each thread's memory, threads in order: bits.
    /// By byte of a thread's memory, for each warp: where the undefined value comes from that was stored there last.
    std::vector<std::uint32_t> local_origins;
    std::vector<std::uint8_t> shared_undefined;  ///< By byte: bits.
    std::array<Barrier, kBarriers> barriers;
    std::uint32_t live_threads = 0;
    std::uint32_t current_warp = 0;
};

/// One launch, from its arguments to its end.
class Launch final : public Observed {
  public:
    struct Setup {
        const ast::Module& module;
        const ast::Entry& entry;
        const decode::Program& program;
        const MachineOptions& options;
        LaunchConfig config;
        std::span<const std::byte> params;
        std::span<const Address> variables;  ///< By index in the entry's variables; 0 where there is no address.
        std::uint64_t number = 0;            ///< Of the launch in its machine: seeds differ from launch to launch.
        Memory& memory;
        FindingLog& findings;
        std::span<Observer* const> observers;
        Address param_block = 0;  ///< The arguments as memory, if the kernel takes the address of one.
    };

    explicit Launch(const Setup& setup);

    /// Runs to the end. Throws LaunchError after a fault.
    void run();
    /// What was executed so far.
    LaunchStats stats() const;

    // Observed
    const std::string& kernel() const override { return entry_.name; }
    const LaunchConfig& config() const override { return config_; }
    std::uint32_t shared_bytes_per_block() const override { return shared_bytes_; }
    Place place(std::uint32_t instruction) const override;
    void report(Finding finding) override { findings_.add(std::move(finding)); }
    bool stored_bytes(const MemoryEvent& event, std::uint32_t lane, std::span<std::byte> bytes) const override;
    bool memory_bytes(const MemoryEvent& event, Address address, std::span<std::byte> bytes) const override;

    /// For memory_fault().
    [[noreturn]] void fault(const exec::Op& op, std::uint64_t address, unsigned lane);
    /// For the functions of exec/launch_rows.h.
    [[noreturn]] void fault_at(const exec::Op& op, exec::MemoryPlace place, std::uint64_t address, unsigned lane);
    void start_copies(const std::vector<AsyncCopy>& copies);
    void commit_copies(std::uint32_t mask);
    void wait_for_copies(std::uint32_t mask, std::uint32_t groups);
    void discard_line(const exec::Op& op, std::uint64_t address, unsigned lane);
    std::uint64_t read_special(ast::SpecialRegister which);

  private:
    enum class Stop : std::uint8_t { Blocked, Preempted };
    using LaneMasks = std::array<std::uint32_t, exec::kLanes>;
    using LaneAddresses = std::array<Address, kWarpLanes>;
    /// Undefined bits of a value in each lane.
    using LaneBits = std::array<std::uint64_t, exec::kLanes>;
    /// What is known of the bytes of one access of one lane; `bits` is null where memory is not watched.
    struct WatchedBytes {
        std::uint8_t* bits = nullptr;
        std::uint32_t* origins = nullptr;  ///< Local memory only.
        Address offset = 0;
    };

    // launch.cpp
    void fill_constants(std::span<const std::byte> params, std::span<const Address> variables);
    std::uint32_t lane_special(ast::SpecialRegister which, std::uint32_t warp, unsigned lane) const;
    void fill_specials(BlockRun& block, bool fresh) const;
    [[noreturn]] void fault(const exec::Op& op, const decode::OpEvent& event, std::uint32_t bytes,
                            std::uint64_t address, unsigned lane);
    std::unique_ptr<BlockRun> new_block();
    void reset(BlockRun& block, std::uint64_t index);
    Dim3 block_id(std::uint64_t index) const;
    Dim3 thread_id(std::uint32_t warp, unsigned lane) const;

    // special_registers.cpp
    std::uint64_t launch_special(ast::SpecialRegister which) const;
    std::uint32_t warp_identifiers() const;
    std::uint32_t warp_identifier(std::uint32_t warp) const;
    std::uint32_t multiprocessors() const;

    // async_copy.cpp
    void finish_copies(const std::vector<AsyncCopy>& copies);
    void tell_weak(std::uint32_t instruction, Space space, AccessKind kind, std::uint32_t bytes, std::uint32_t mask,
                   const LaneAddresses& addresses) const;
    void tell_copies(std::span<const AsyncCopy> copies);

    // scheduler.cpp
    std::uint64_t block_in_order(std::uint64_t position) const;
    void admit();
    void retire(std::size_t resident);
    /// True when a path ran for a whole preemption interval and got nowhere: it may be spinning.
    bool take_turn(BlockRun& block);
    Warp* pick_warp(BlockRun& block);
    Path pick_path(Warp& warp);
    std::uint64_t slice();
    void unblock(BlockRun& block);
    bool is_stuck(const BlockRun& block) const;
    void arrive_at_barrier(BlockRun& block, Warp& warp, const Path& path);
    void release_barrier(BlockRun& block, std::uint32_t number);
    void release_split_warp(BlockRun& block, std::uint32_t index, std::uint32_t number);
    void pass_barrier(Warp& warp, Path path);
    void check_barrier(BlockRun& block, std::uint32_t number);
    void check_barriers(BlockRun& block);
    std::uint32_t counted_threads(const BlockRun& block, std::uint32_t number) const;
    void report_divergent_barrier(const BlockRun& block, std::uint32_t warp, const WaitingPath& waiting,
                                  std::string detail);
    [[noreturn]] void fail_stuck(const BlockRun& block);
    [[noreturn]] void fail_no_progress();
    std::string describe(const BlockRun& block) const;

    // warp_sync.cpp
    /// bar.warp.sync, shfl, vote...: true when all members are there and `path` goes on.
    bool synchronise_warp(BlockRun& block, Warp& warp, Path& path);
    /// Lets those go on whose members are there. Lanes that have exited are not waited for.
    void check_warp_barriers(BlockRun& block, Warp& warp);
    LaneMasks member_masks(const Warp& warp, const decode::Segment& segment) const;
    void complete_warp_operation(BlockRun& block, Warp& warp, const decode::Segment& segment, std::uint32_t mask,
                                 const LaneMasks& members);
    [[noreturn]] void fail_trap(const Warp& warp, const decode::Segment& segment, std::uint32_t mask,
                                const std::string& why);
    void add_to_reduction(Barrier& barrier, const decode::Segment& segment, std::uint32_t mask) const;
    void release_reductions(BlockRun& block, std::uint32_t number);

    // registers.cpp
    void reset_registers(BlockRun& block) const;
    std::string register_name(std::uint32_t number) const;
    /// Tells observers of those of `lanes` in which the tracked register is undefined.
    void use_register(const BlockRun& block, Warp& warp, std::uint32_t number, std::uint32_t lanes,
                      std::uint32_t instruction, RegisterUse use) const;
    void use_at_end(const BlockRun& block, Warp& warp, std::uint32_t segment, std::uint32_t mask) const;
    /// Before tracked op `index` is executed: what it uses, and what becomes of its results.
    void track(BlockRun& block, Warp& warp, std::uint32_t index, std::uint32_t mask);
    /// The same for what lanes execute when a barrier lets them go on.
    void track_released(BlockRun& block, Warp& warp, const decode::Segment& segment, std::uint32_t mask) {
        const std::vector<std::uint32_t>& of_op = program_.definedness.of_op;
        if (watches_registers_ && !of_op.empty() && of_op[segment.released_op] != 0)
            track(block, warp, segment.released_op, mask);
    }
    void tell_use(const BlockRun& block, const Warp& warp, std::uint32_t lanes, std::uint32_t instruction,
                  RegisterUse use, std::string_view name, std::uint32_t origin) const;
    static void set_undefined(Warp& warp, const decode::TrackedOp& tracked, unsigned destination, std::uint32_t mask,
                              const LaneBits& bits, std::uint32_t origin);

    // undefined_memory.cpp
    void track_memory(BlockRun& block, Warp& warp, const decode::TrackedOp& tracked, std::uint32_t index,
                      std::uint32_t mask);
    void track_load(BlockRun& block, Warp& warp, const decode::TrackedOp& tracked, std::uint32_t index,
                    std::uint32_t mask, const LaneAddresses& addresses);
    std::uint32_t track_stored(BlockRun& block, Warp& warp, const decode::TrackedOp& tracked, std::uint32_t index,
                               std::uint32_t mask, const LaneAddresses& addresses, unsigned source);
    static std::uint32_t partly_defined(const Warp& warp, const decode::TrackedOp& tracked, const exec::Op& op);
    void read_by_atomic(BlockRun& block, Warp& warp, std::uint32_t index, std::uint32_t mask,
                        const LaneAddresses& addresses);
    WatchedBytes watched_bytes(BlockRun& block, const Warp& warp, Space space, Address address, std::uint32_t bytes,
                               unsigned lane) const;
    /// Where a value comes from: the number of a tracked register, or one that stands for a load from local memory.
    std::uint32_t origin_of_load(const exec::Op& op, Address address);

    // undefined_values.cpp: undefined bits of the results of an op that touches no memory, in lanes of `mask`.
    LaneBits undefined_result(const Warp& warp, const decode::TrackedOp& tracked, const exec::Op& op,
                              std::uint32_t mask);
    std::uint64_t operand_value(const exec::Op& op, unsigned operand, std::uint8_t bytes, unsigned lane) const;
    LaneBits decided_by_bits(const Warp& warp, const decode::TrackedOp& tracked, const exec::Op& op,
                             std::uint32_t mask) const;
    LaneBits moved_bits(const Warp& warp, const decode::TrackedOp& tracked, const exec::Op& op, std::uint32_t mask);
    LaneBits shuffled_bits(const Warp& warp, const decode::TrackedOp& tracked, const exec::Op& op, std::uint32_t mask);
    LaneBits run_on_bits(const exec::Op& op, std::uint8_t result_bytes);

    // execute.cpp
    template <bool kWatched, bool kRegisters>
    Stop run_path(BlockRun& block, Warp& warp, Path path, std::uint64_t slice);
    template <bool kWatched, bool kRegisters>
    void run_ops(BlockRun& block, Warp& warp, const Path& path);
    void watch_op(std::uint32_t index, std::uint32_t mask);
    void tell_memory(std::uint32_t index, std::uint32_t mask, Space space, const LaneAddresses& addresses);
    LaneAddresses addresses_of(const exec::Op& op, const decode::OpEvent& event) const;
    /// Where the lanes go after a branch; paths that split off become ready.
    bool branch(Warp& warp, const decode::Segment& segment, Path& path);
    bool exit_lanes(BlockRun& block, Warp& warp, const decode::Segment& segment, Path& path);
    std::uint32_t condition(const decode::Segment& segment, std::uint32_t mask) const;
    std::uint32_t lane_value(const decode::Place& place, std::uint32_t mask) const;
    void tell_branch(const decode::Segment& segment, std::uint32_t mask, std::uint32_t taken);

    const ast::Module& module_;
    const ast::Entry& entry_;
    const decode::Program& program_;
    const MachineOptions& options_;
    const LaunchConfig config_;
    const std::uint64_t number_;
    Memory& memory_;
    FindingLog& findings_;
    const std::span<Observer* const> observers_;
    const bool watched_;
    const bool watches_registers_;  ///< An observer asks for it.
    const bool seeded_;
    Random random_;

    std::uint32_t shared_bytes_ = 0;
    std::uint32_t block_threads_ = 0;
    std::uint32_t block_warps_ = 0;
    AlignedBytes constants_;
    exec::Context context_;
    Counters counters_;
    std::vector<std::uint64_t> lanes_by_instruction_;
    std::vector<std::uint64_t> warps_by_instruction_;

    std::vector<std::unique_ptr<BlockRun>> residents_;
    std::vector<std::unique_ptr<BlockRun>> pool_;
    std::uint64_t next_block_ = 0;
    std::size_t wanted_residents_ = 1;
    std::size_t current_resident_ = 0;
    BlockRun* running_block_ = nullptr;
    const exec::Op* watched_op_ = nullptr;  ///< While observers hear of it.
    std::uint32_t running_warp_ = 0;
    std::uint64_t register_reads_ = 0;    ///< LaunchStats::register_reads.
    std::uint32_t stored_origin_ = 0;     ///< Of the undefined value that was stored in shared memory last.
    std::vector<LocalLoad> local_loads_;  ///< Origins that are no registers.
    std::map<std::pair<std::uint32_t, Address>, std::uint32_t> load_numbers_;  ///< By instruction and address.
    std::uint64_t clock_ = 0;                                                  ///< Cycles since the launch began.
    std::uint64_t clock_reads_ = 0;
};

}  // namespace gradguard::vgpu
