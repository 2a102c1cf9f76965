// SPDX-License-Identifier: Apache-2.0
// atom and red: lane by lane, one form for all vector units.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
namespace {

// clang-format off
#include "harness/vgpu/exec/lanes.inl"
#include "harness/vgpu/exec/float_functions.inl"
#include "harness/vgpu/exec/half_functions.inl"
#include "harness/vgpu/exec/memory.inl"
// clang-format on

// ---- operations: f(old, b, c)
// ----------------------------------------------------------------------------------------

#define OPERATION(name, expression)                                         \
    struct name {                                                           \
        template <class T>                                                  \
        static T apply([[maybe_unused]] T old, T b, [[maybe_unused]] T c) { \
            return expression;                                              \
        }                                                                   \
    }
OPERATION(Sum, static_cast<T>(old + b));
OPERATION(FloatSum, canonical(old + b));
/// On global memory the manual has atom.add.f32 flush subnormals, on shared memory not.
OPERATION(FlushedSum, (finish<true, false>(flush<true>(old) + flush<true>(b))));
OPERATION(HalfSum, (HalfAdd<T, false, false>::apply(old, b)));
template <class H>
struct PairSum {
    static u32 apply(u32 old, u32 b, u32) { return Pair<HalfAdd<H, false, false>, H>::apply(old, b); }
};
OPERATION(Exchange, b);
OPERATION(CompareSwap, old == b ? c : old);
OPERATION(Minimum, b < old ? b : old);
OPERATION(Maximum, b > old ? b : old);
OPERATION(And, old& b);
OPERATION(Or, old | b);
OPERATION(Xor, old ^ b);
OPERATION(Increment, old >= b ? T(0) : static_cast<T>(old + 1));
OPERATION(Decrement, old == 0 || old > b ? b : static_cast<T>(old - 1));

/// Operands: address, then b (and c), then, with kReturns, the destination.
template <Where kWhere, class F, class T, unsigned kOperands, bool kReturns, class A>
void atomic_lanes(Context& c, const Op& op) {
    using Bits = typename Slot<T>::Raw;
    const A* const address = reinterpret_cast<const A*>(c.base[op.space[0]] + op.offset[0]);
    for (u32 mask = c.mask; mask != 0; mask &= mask - 1) {
        const auto i = static_cast<unsigned>(__builtin_ctz(mask));
        const u64 start = address_of_lane(address, op, i);
        std::byte* data = locate<kWhere, true>(c, start, sizeof(T));
        if (!data) data = locate_own<kWhere>(c, start, sizeof(T), i);
        if (!data || start % sizeof(T) != 0) memory_fault(c, op, start, i);
        count_bytes<kWhere, true>(c, start, sizeof(T));
        count_bytes<kWhere, false>(c, start, sizeof(T));
        T old;
        __builtin_memcpy(&old, data, sizeof(T));
        const T b = Slot<T>::read(slot<T>(c, op, 1)[i]);
        const T third = kOperands > 1 ? Slot<T>::read(slot<T>(c, op, kOperands > 1 ? 2 : 1)[i]) : b;
        const T fresh = F::apply(old, b, third);
        __builtin_memcpy(data, &fresh, sizeof(T));
        if constexpr (kReturns) slot<T>(c, op, kOperands + 1)[i] = static_cast<Bits>(Slot<T>::write(old));
    }
}

#define ATOMIC(name, op, F, T, operands)                                                                               \
    {"atom." name, "", &atomic_lanes<op, F, T, operands, true, u64>, &atomic_lanes<op, F, T, operands, true, u64>,     \
     kInternal},                                                                                                       \
    {                                                                                                                  \
        "red." name, "", &atomic_lanes<op, F, T, operands, false, u64>, &atomic_lanes<op, F, T, operands, false, u64>, \
            kInternal                                                                                                  \
    }
#define ATOMIC32(name, F, T, operands)                                                   \
    {"atom." name "@32", "", &atomic_lanes<Where::Shared, F, T, operands, true, u32>,    \
     &atomic_lanes<Where::Shared, F, T, operands, true, u32>, kInternal},                \
    {                                                                                    \
        "red." name "@32", "", &atomic_lanes<Where::Shared, F, T, operands, false, u32>, \
            &atomic_lanes<Where::Shared, F, T, operands, false, u32>, kInternal          \
    }
#define EVERYWHERE(name, F, T, operands)                                                                            \
    ATOMIC("global." name, Where::Global, F, T, operands), ATOMIC("generic." name, Where::Generic, F, T, operands), \
        ATOMIC("shared." name, Where::Shared, F, T, operands), ATOMIC32("shared." name, F, T, operands)
#define BITWISE(size, T)                                                                                         \
    EVERYWHERE("and.b" size, And, T, 1), EVERYWHERE("or.b" size, Or, T, 1), EVERYWHERE("xor.b" size, Xor, T, 1), \
        EVERYWHERE("exch.b" size, Exchange, T, 1), EVERYWHERE("cas.b" size, CompareSwap, T, 2)

const Row kRows[] = {
    EVERYWHERE("add.u32", Sum, u32, 1),
    EVERYWHERE("add.s32", Sum, u32, 1),
    EVERYWHERE("add.u64", Sum, u64, 1),
    ATOMIC("global.add.f32", Where::Global, FlushedSum, float, 1),
    ATOMIC("generic.add.f32", Where::Generic, FlushedSum, float, 1),
    ATOMIC("shared.add.f32", Where::Shared, FloatSum, float, 1),
    ATOMIC32("shared.add.f32", FloatSum, float, 1),
    EVERYWHERE("add.f64", FloatSum, double, 1),
    EVERYWHERE("add.noftz.f16", HalfSum, f16, 1),
    EVERYWHERE("add.noftz.bf16", HalfSum, bf16, 1),
    EVERYWHERE("add.noftz.f16x2", PairSum<f16>, u32, 1),
    EVERYWHERE("add.noftz.bf16x2", PairSum<bf16>, u32, 1),
    EVERYWHERE("inc.u32", Increment, u32, 1),
    EVERYWHERE("dec.u32", Decrement, u32, 1),
    EVERYWHERE("min.u32", Minimum, u32, 1),
    EVERYWHERE("max.u32", Maximum, u32, 1),
    EVERYWHERE("min.s32", Minimum, s32, 1),
    EVERYWHERE("max.s32", Maximum, s32, 1),
    EVERYWHERE("min.u64", Minimum, u64, 1),
    EVERYWHERE("max.u64", Maximum, u64, 1),
    EVERYWHERE("min.s64", Minimum, s64, 1),
    EVERYWHERE("max.s64", Maximum, s64, 1),
    BITWISE("32", u32),
    BITWISE("64", u64),
};

}  // namespace

RowSpan atomic_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
