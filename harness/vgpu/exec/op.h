// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// What the instruction handlers see. This header is included by files that are compiled for a particular vector unit:
/// plain data only, no function with external linkage may be defined here.
namespace gradguard::vgpu::exec {

inline constexpr unsigned kLanes = 32;
inline constexpr std::uint32_t kFullMask = 0xFFFFFFFFU;

/// An address is allocation number times 2^36 plus offset. The numbers below kFirstAllocation are windows.
inline constexpr unsigned kOffsetBits = 36;
inline constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
/// Generic addresses of the block's shared memory.
inline constexpr std::uint64_t kSharedWindow = 1;
/// Generic addresses of a thread's local memory.
inline constexpr std::uint64_t kLocalWindow = 2;
inline constexpr std::uint64_t kFirstAllocation = 16;

/// An allocation as handlers see it. A dead one has no bytes.
struct AllocationView {
    std::byte* data;               ///< Of offset `begin`.
    std::uint64_t begin;           ///< First valid offset (mapped memory keeps its host alignment).
    std::uint64_t bytes;           ///< Readable from there.
    std::uint64_t writable_bytes;  ///< `bytes`, or 0 for constants.
};

struct Op;
struct Context;

/// Runs one instruction for a warp. The `full` form serves all 32 lanes, the `masked` form those of Context::mask.
using Handler = void (*)(Context&, const Op&);

/// An instruction under @p: which handlers run for the lanes that pass.
struct Guard {
    Handler full;
    Handler masked;
    std::uint32_t predicate;  ///< Byte offset in the frame.
    std::uint32_t invert;     ///< All ones for @!p.
    bool counts;              ///< The first op of its instruction: lanes held back are counted once.
};

inline constexpr unsigned kMaxOperands = 5;
/// Words of 32 lanes that a fragment has room for.
inline constexpr unsigned kFragmentWords = 4;

/// A decoded instruction: one cache line. Operand k lives at Context::base[space[k]] + offset[k].
struct alignas(64) Op {
    Handler full;
    Handler masked;
    const Guard* guard;
    std::uint32_t offset[kMaxOperands];
    std::uint8_t space[kMaxOperands];  ///< 0: the warp's frame; 1: constants of the launch.
    std::uint8_t lane_bytes;           ///< Memory: bytes of one element.
    std::uint8_t elements;             ///< Memory: 1, 2 or 4.
    std::uint8_t is_signed;            ///< Memory: a narrow load extends the sign.
    std::int32_t immediate;            ///< Memory: offset to the address.
    std::uint32_t instruction;         ///< Index in the entry's instructions.
};
static_assert(sizeof(Op) == 64);

/// Operand 0 of memory instructions is the address, data follow. Other instructions: destinations, then sources.
struct Context {
    std::byte* base[2] = {nullptr, nullptr};  ///< Frame of the warp, constants of the launch.
    std::uint32_t mask = 0;                   ///< Lanes that run.
    std::uint64_t lanes_off = 0;              ///< Lane-instructions that guards switched off, summed.
    const AllocationView* allocations = nullptr;
    std::uint64_t allocation_count = 0;
    std::byte* shared = nullptr;  ///< Of the block.
    std::uint64_t shared_bytes = 0;
    std::uint64_t global_bytes_read = 0;
    std::uint64_t global_bytes_written = 0;
    void* owner = nullptr;                   ///< The launch, for faults.
    std::byte* local = nullptr;              ///< Of the warp: one lane's behind the other's.
    std::uint64_t local_bytes = 0;           ///< Of a lane.
    const std::uint32_t* members = nullptr;  ///< Warp operations: each lane's member mask.
    std::uint32_t reduction = 0;             ///< Barriers that reduce: the result.
    std::uint64_t approximation_seed = 0;    ///< 0: the nearest value.
    std::uint64_t param_address = 0;         ///< Of the argument block, if the kernel takes its address.
};

/// Ends the launch: `address` in lane `lane` cannot be accessed. Works out why. Throws.
[[noreturn]] void memory_fault(Context& context, const Op& op, std::uint64_t address, unsigned lane);

/// What a row of the instruction table says beside name and handlers.
enum RowFlags : std::uint8_t {
    kPlain = 0,
    kProduct = 1,       ///< A product without a rounding modifier: may be fused with a sum that uses it.
    kSum = 2,           ///< A sum without one.
    kDifference = 4,    ///< A difference without one.
    kMove = 8,          ///< Copies its source: an alias where the source never changes.
    kInternal = 16,     ///< Not PTX: what the decoder builds other instructions from.
    kWarp = 32,         ///< Waits for the lanes of a member mask, the last operand, which `format` leaves out.
    kApproximate = 64,  ///< The manual gives a bound, not a value: only on request.
};

/// A row of the instruction table. `format` is "DESTINATIONS=SOURCES", a letter for each operand:
///   p predicate; b h w d integers of 8, 16, 32, 64 bits; H W D the same sizes, bits of any kind;
///   e f g floats of 16, 32, 64 bits; x packed pair of 16-bit floats; c the carry, which PTX does not write;
///   1 2 4 a fragment of so many words, in PTX as many registers in braces.
/// A leading ~ admits registers wider than the letter says.
struct Row {
    const char* name;
    const char* format;
    Handler full;
    Handler masked;
    std::uint8_t flags;
};

struct RowSpan {
    const Row* rows;
    std::size_t count;
};

/// The same rows in the same order, compiled for three vector units. Null when this build has no such form.
RowSpan portable_rows();
RowSpan avx2_rows();
RowSpan avx512_rows();
/// Directed roundings and other rare rows: one form for all.
RowSpan directed_rounding_rows();
/// atom and red, one form for all.
RowSpan atomic_rows();

/// shfl, vote, match, redux, one form for all.
RowSpan warp_rows();
/// mma and fragments, one form for all.
RowSpan matrix_rows();
/// 16-bit floats and rare integer instructions, one form for all.
RowSpan half_rows();
/// Approximate instructions, one form for all.
RowSpan approximate_rows();
RowSpan approximate_function_rows();
RowSpan rare_integer_rows();
/// Asynchronous copies, clocks, hints: what asks the launch, or nobody. One form for all.
RowSpan launch_rows();
/// Conversions that kernels seldom use, one form for all.
RowSpan rare_conversion_rows();

/// The handler of every guarded instruction.
void run_guarded(Context& context, const Op& op);

}  // namespace gradguard::vgpu::exec
