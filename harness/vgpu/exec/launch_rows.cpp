// SPDX-License-Identifier: Apache-2.0
// Instructions that ask the launch for something: asynchronous copies, clocks, discard. Also hints that do nothing.
// One form for all vector units.
#include "harness/vgpu/exec/launch_rows.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gradguard::vgpu::exec {
namespace {

// clang-format off
#include "harness/vgpu/exec/lanes.inl"
#include "harness/vgpu/exec/memory.inl"
// clang-format on

/// Operands: destination in shared memory, source in global memory, bytes to read, whether to read at all.
template <class A, bool kMayIgnore>
struct CopyAsync {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        std::vector<AsyncCopy> copies;
        const unsigned size = op.lane_bytes;
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            const u64 to = address_of_lane(slot<A>(c, op, 0), op, i);
            const u64 from = slot<u64>(c, op, 1)[i];
            const bool ignore = kMayIgnore && (predicate(c, op, 3) & kBit32[i]) != 0;
            const u32 bytes = ignore ? 0 : slot<u32>(c, op, 2)[i];
            if (!locate<Where::Shared, true>(c, to, size) || to % size != 0)
                memory_fault_at(c, op, {true, true, size}, to, i);
            if (bytes != 0 && (!locate<Where::Global, false>(c, from, bytes) || from % size != 0))
                memory_fault_at(c, op, {false, false, bytes}, from, i);
            AsyncCopy copy;
            copy.op = &op;
            copy.source = from;
            copy.destination = static_cast<u32>(to);
            copy.lane = static_cast<u8>(i);
            copy.bytes = static_cast<u8>(size);
            copy.source_bytes = static_cast<u8>(bytes < 255 ? bytes : 255);
            copies.push_back(copy);
        }
        start_copies(c, copies);
    }
};

struct CommitGroup {
    template <bool kMasked>
    static void run(Context& c, const Op&) {
        commit_copies(c, kMasked ? c.mask : kFullMask);
    }
};
struct WaitGroup {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        wait_for_copies(c, kMasked ? c.mask : kFullMask, static_cast<u32>(op.immediate));
    }
};
struct WaitAll {
    template <bool kMasked>
    static void run(Context& c, const Op&) {
        const u32 mask = kMasked ? c.mask : kFullMask;
        commit_copies(c, mask);
        wait_for_copies(c, mask, 0);
    }
};

/// The launch is asked once for a warp: its lanes execute at the same time.
template <class T>
struct ReadSpecial {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const u64 value = read_special(c, static_cast<u32>(op.immediate));
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1)
            slot<T>(c, op, 0)[__builtin_ctz(mask)] = static_cast<T>(value);
    }
};

struct Discard {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        constexpr unsigned kLine = 128;
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            const u64 address = address_of_lane(slot<u64>(c, op, 0), op, i);
            if (!locate<Where::Global, true>(c, address, kLine) || address % kLine != 0)
                memory_fault_at(c, op, {false, true, kLine}, address, i);
            discard_line(c, op, address, i);
        }
    }
};

/// isspacep for what lies among the allocations: constants are those that cannot be written, but for parameters.
enum class Question { Global, Constant, Parameter };
template <Question kQuestion>
struct IsInSpace {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const u64* const address = slot<u64>(c, op, 1);
        u32 yes = 0;
        for (unsigned i = 0; i < kLanes; ++i) {
            const u64 number = address[i] >> kOffsetBits;
            const bool known = number >= kFirstAllocation;
            const bool parameter = known && number == c.param_address >> kOffsetBits;
            const bool constant = known && !parameter && number < c.allocation_count &&
                                  c.allocations[number].bytes != 0 && c.allocations[number].writable_bytes == 0;
            const bool answer = kQuestion == Question::Parameter  ? parameter
                                : kQuestion == Question::Constant ? constant
                                                                  : known && !constant;
            yes |= answer ? kBit32[i] : 0;
        }
        u32& d = predicate(c, op, 0);
        d = kMasked ? (d & ~c.mask) | (yes & c.mask) : yes;
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, flags, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, flags }
#define NO_EFFECT(name, format) ROW(name, format, kPlain, Nothing)
#define FENCES(scope) NO_EFFECT("fence.acquire." scope, "="), NO_EFFECT("fence.release." scope, "=")

const Row kRows[] = {
    ROW("%cp.async", "", kInternal, CopyAsync<u64, false>),
    ROW("%cp.async@32", "", kInternal, CopyAsync<u32, false>),
    ROW("%cp.async.ignore", "", kInternal, CopyAsync<u64, true>),
    ROW("%cp.async.ignore@32", "", kInternal, CopyAsync<u32, true>),
    ROW("cp.async.commit_group", "=", kPlain, CommitGroup),
    ROW("%cp.async.wait_group", "=", kInternal, WaitGroup),
    ROW("cp.async.wait_all", "=", kPlain, WaitAll),
    ROW("%special.u32", "W=", kInternal, ReadSpecial<u32>),
    ROW("%special.u64", "D=", kInternal, ReadSpecial<u64>),
    ROW("%discard", "", kInternal, Discard),
    ROW("isspacep.global", "p=d", kPlain, IsInSpace<Question::Global>),
    ROW("isspacep.const", "p=d", kPlain, IsInSpace<Question::Constant>),
    ROW("isspacep.param", "p=d", kPlain, IsInSpace<Question::Parameter>),
    ROW("isspacep.param::entry", "p=d", kPlain, IsInSpace<Question::Parameter>),
    // No launch depends on another here: each runs to its end before the next begins.
    NO_EFFECT("griddepcontrol.launch_dependents", "="),
    NO_EFFECT("griddepcontrol.wait", "="),
    FENCES("cta"),
    FENCES("cluster"),
    FENCES("gpu"),
    FENCES("sys"),
    NO_EFFECT("fence.acq_rel.cluster", "="),
    NO_EFFECT("fence.sc.cluster", "="),
    // Nobody counts these events.
    NO_EFFECT("pmevent", "=w"),
    NO_EFFECT("pmevent.mask", "=w"),
    // There is one way to memory, so proxies agree.
    NO_EFFECT("fence.proxy.alias", "="),
    NO_EFFECT("fence.proxy.async", "="),
    NO_EFFECT("fence.proxy.async.global", "="),
    NO_EFFECT("fence.proxy.async.shared::cta", "="),
    NO_EFFECT("membar.proxy.alias", "="),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan launch_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
