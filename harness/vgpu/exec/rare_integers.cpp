// SPDX-License-Identifier: Apache-2.0
// Integer instructions that kernels seldom use, and those with a carry. One form for all vector units.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
namespace {

// clang-format off
#include "harness/vgpu/exec/lanes.inl"
#include "harness/vgpu/exec/integer_functions.inl"
// clang-format on

struct AbsoluteDifference {
    template <class T>
    static T apply(T a, T b, T c) {
        const Wrap<T> x = Wrap<T>(a), y = Wrap<T>(b);
        return T(Wrap<T>(c) + (a < b ? y - x : x - y));
    }
};

/// The low 24 bits of each operand, by its type's sign.
template <class T>
s64 low_24(T a) {
    const auto shifted = static_cast<T>(static_cast<u32>(a) << 8);
    return static_cast<s64>(static_cast<T>(shifted >> 8));
}
template <bool kHigh>
struct Multiply24 {
    template <class T>
    static T apply(T a, T b) {
        const s64 product = low_24(a) * low_24(b);
        return static_cast<T>(kHigh ? product >> 16 : product);
    }
};
template <bool kHigh>
struct Mad24 {
    template <class T>
    static T apply(T a, T b, T c) {
        return static_cast<T>(static_cast<u32>(Multiply24<kHigh>::apply(a, b)) + static_cast<u32>(c));
    }
};
struct MadHighSaturated {
    static s32 apply(s32 a, s32 b, s32 c) { return IntAddSaturated::apply(MultiplyHigh::apply(a, b), c); }
};

template <bool kSigned>
s64 byte_of(u32 word, unsigned i) {
    const auto byte = static_cast<u8>(word >> (8 * i));
    return kSigned ? s64{static_cast<s8>(byte)} : s64{byte};
}
template <bool kSignedA, bool kSignedB>
struct Dot4 {
    static u32 apply(u32 a, u32 b, u32 c) {
        s64 sum = c;
        for (unsigned i = 0; i < 4; ++i) sum += byte_of<kSignedA>(a, i) * byte_of<kSignedB>(b, i);
        return static_cast<u32>(sum);
    }
};
template <bool kSignedA, bool kSignedB, bool kHigh>
struct Dot2 {
    static u32 apply(u32 a, u32 b, u32 c) {
        s64 sum = c;
        for (unsigned i = 0; i < 2; ++i) {
            const auto half = static_cast<u16>(a >> (16 * i));
            const s64 x = kSignedA ? s64{static_cast<s16>(half)} : s64{half};
            sum += x * byte_of<kSignedB>(b, i + (kHigh ? 2 : 0));
        }
        return static_cast<u32>(sum);
    }
};

template <bool kClamp>
struct BitMask {
    static u32 apply(u32 position, u32 width) {
        if (!kClamp) position &= 31U, width &= 31U;
        if (position > 31) return 0;
        const u64 ones = width >= 32 ? 0xFFFFFFFFULL : (1ULL << width) - 1;
        return static_cast<u32>(ones << position);
    }
};
template <bool kClamp>
struct ExtendFrom {
    template <class T>
    static T apply(T a, u32 width) {
        const u32 kept = kClamp ? (width < 32 ? width : 32) : width & 31U;
        if (kept == 0) return 0;
        return static_cast<T>(static_cast<T>(static_cast<u32>(a) << (32 - kept)) >> (32 - kept));
    }
};
struct FindNthSet {
    static u32 apply(u32 mask, u32 base, s32 offset) {
        if (offset == 0) return base < 32 && (mask >> base & 1U) != 0 ? base : kFullMask;
        s64 left = (offset < 0 ? -s64{offset} : s64{offset}) - 1;
        for (s64 i = base; i >= 0 && i<32; i += offset> 0 ? 1 : -1) {
            if ((mask >> i & 1U) != 0 && left-- == 0) return static_cast<u32>(i);
        }
        return kFullMask;
    }
};
struct FindShift {
    template <class T>
    static u32 apply(T a) {
        const u32 position = FindBit::apply(a);
        return position == kFullMask ? position : kBits<T> - 1 - position;
    }
};

enum class Bytes { Forward, Backward, Replicate, ClampLeft, ClampRight, Replicate16 };
template <Bytes kMode>
struct PermuteMode {
    static u32 apply(u32 a, u32 b, u32 control) {
        const u64 bytes = static_cast<u64>(b) << 32 | a;
        const unsigned c = control & 3U;
        u32 r = 0;
        for (unsigned i = 0; i < 4; ++i) {
            unsigned source = c;
            if (kMode == Bytes::Forward) source = c + i;
            if (kMode == Bytes::Backward) source = (c + 8 - i) % 8;
            if (kMode == Bytes::ClampLeft) source = i > c ? i : c;
            if (kMode == Bytes::ClampRight) source = i < c ? i : c;
            if (kMode == Bytes::Replicate16) source = (c & 1U) * 2 + (i & 1U);
            r |= (static_cast<u32>(bytes >> (8 * source)) & 0xFFU) << (8 * i);
        }
        return r;
    }
};

// ---- carries: operands d, carry out (if any), a, b, carry in (if any)
// ------------------------------------------------

template <class T, bool kSubtract, bool kIn, bool kOut>
struct Carry {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        constexpr unsigned kA = kOut ? 2 : 1;
        const u32 mask = kMasked ? c.mask : kFullMask;
        const u32 in = kIn ? predicate(c, op, kA + 2) : 0;
        u32 out = 0;
        for (u32 rest = mask; rest != 0; rest &= rest - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(rest));
            const T a = slot<T>(c, op, kA)[i], b = slot<T>(c, op, kA + 1)[i], carry = (in & kBit32[i]) != 0 ? 1 : 0;
            T partial = 0, result = 0;
            const bool first =
                kSubtract ? __builtin_sub_overflow(a, b, &partial) : __builtin_add_overflow(a, b, &partial);
            const bool second = kSubtract ? __builtin_sub_overflow(partial, carry, &result)
                                          : __builtin_add_overflow(partial, carry, &result);
            if (first || second) out |= kBit32[i];
            slot<T>(c, op, 0)[i] = result;
        }
        if constexpr (kOut) {
            u32& d = predicate(c, op, 1);
            d = (d & ~mask) | out;
        }
    }
};

/// F on both halves of a word.
template <class F, class T>
struct EachHalf {
    static u32 apply(u32 a, u32 b) {
        const auto low = static_cast<u16>(F::apply(static_cast<T>(a), static_cast<T>(b)));
        const auto high = static_cast<u16>(F::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
        return static_cast<u32>(high) << 16 | low;
    }
};
/// .relu: negative results become 0.
template <class F>
struct NotNegative {
    template <class T>
    static T apply(T a, T b) {
        const T result = F::apply(a, b);
        return result < T(0) ? T(0) : result;
    }
};

/// isspacep: whether a generic address lies in a window of its own.
template <u64 kWindow>
struct IsInWindow {
    static bool apply(u64 address) { return address >> kOffsetBits == kWindow; }
};
struct LocalToGeneric {
    static u64 apply(u64 address) { return address | kLocalWindow << kOffsetBits; }
};
struct GenericToLocal {
    static u64 apply(u64 address) { return address & kOffsetMask; }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, kPlain }
#define CARRIES(type, T, l)                                                \
    ROW("add.cc." type, l "c=" l l, Carry<T, false, false, true>),         \
        ROW("addc." type, l "=" l l "c", Carry<T, false, true, false>),    \
        ROW("addc.cc." type, l "c=" l l "c", Carry<T, false, true, true>), \
        ROW("sub.cc." type, l "c=" l l, Carry<T, true, false, true>),      \
        ROW("subc." type, l "=" l l "c", Carry<T, true, true, false>),     \
        ROW("subc.cc." type, l "c=" l l "c", Carry<T, true, true, true>)
#define DOT(a, A, b, B)                                                      \
    ROW("dp4a." a "." b, "w=WWw", Map3<Dot4<A, B>, u32, u32>),               \
        ROW("dp2a.lo." a "." b, "w=WWw", Map3<Dot2<A, B, false>, u32, u32>), \
        ROW("dp2a.hi." a "." b, "w=WWw", Map3<Dot2<A, B, true>, u32, u32>)

const Row kRows[] = {
    ROW("sad.u16", "h=hhh", Map3<AbsoluteDifference, u16, u16>),
    ROW("sad.s16", "h=hhh", Map3<AbsoluteDifference, s16, s16>),
    ROW("sad.u32", "w=www", Map3<AbsoluteDifference, u32, u32>),
    ROW("sad.s32", "w=www", Map3<AbsoluteDifference, s32, s32>),
    ROW("sad.u64", "d=ddd", Map3<AbsoluteDifference, u64, u64>),
    ROW("sad.s64", "d=ddd", Map3<AbsoluteDifference, s64, s64>),
    ROW("mul24.lo.u32", "w=ww", Map2<Multiply24<false>, u32, u32>),
    ROW("mul24.lo.s32", "w=ww", Map2<Multiply24<false>, s32, s32>),
    ROW("mul24.hi.u32", "w=ww", Map2<Multiply24<true>, u32, u32>),
    ROW("mul24.hi.s32", "w=ww", Map2<Multiply24<true>, s32, s32>),
    ROW("mad24.lo.u32", "w=www", Map3<Mad24<false>, u32, u32>),
    ROW("mad24.lo.s32", "w=www", Map3<Mad24<false>, s32, s32>),
    ROW("mad24.hi.u32", "w=www", Map3<Mad24<true>, u32, u32>),
    ROW("mad24.hi.s32", "w=www", Map3<Mad24<true>, s32, s32>),
    ROW("mad.hi.sat.s32", "w=www", Map3<MadHighSaturated, s32, s32>),
    DOT("u32", false, "u32", false),
    DOT("u32", false, "s32", true),
    DOT("s32", true, "u32", false),
    DOT("s32", true, "s32", true),
    ROW("bmsk.clamp.b32", "W=ww", Map2<BitMask<true>, u32, u32>),
    ROW("bmsk.wrap.b32", "W=ww", Map2<BitMask<false>, u32, u32>),
    ROW("szext.clamp.u32", "w=ww", Map2<ExtendFrom<true>, u32, u32, u32>),
    ROW("szext.clamp.s32", "w=ww", Map2<ExtendFrom<true>, s32, s32, u32>),
    ROW("szext.wrap.u32", "w=ww", Map2<ExtendFrom<false>, u32, u32, u32>),
    ROW("szext.wrap.s32", "w=ww", Map2<ExtendFrom<false>, s32, s32, u32>),
    ROW("add.u16x2", "W=WW", Map2<EachHalf<IntAdd, u16>, u32, u32>),
    ROW("add.s16x2", "W=WW", Map2<EachHalf<IntAdd, s16>, u32, u32>),
    ROW("min.u16x2", "W=WW", Map2<EachHalf<IntMinimum, u16>, u32, u32>),
    ROW("min.s16x2", "W=WW", Map2<EachHalf<IntMinimum, s16>, u32, u32>),
    ROW("max.u16x2", "W=WW", Map2<EachHalf<IntMaximum, u16>, u32, u32>),
    ROW("max.s16x2", "W=WW", Map2<EachHalf<IntMaximum, s16>, u32, u32>),
    ROW("min.relu.s16x2", "W=WW", Map2<EachHalf<NotNegative<IntMinimum>, s16>, u32, u32>),
    ROW("max.relu.s16x2", "W=WW", Map2<EachHalf<NotNegative<IntMaximum>, s16>, u32, u32>),
    ROW("min.relu.s32", "w=ww", Map2<NotNegative<IntMinimum>, s32, s32>),
    ROW("max.relu.s32", "w=ww", Map2<NotNegative<IntMaximum>, s32, s32>),
    ROW("fns.b32", "W=Www", Map3<FindNthSet, u32, u32, u32, s32>),
    ROW("bfind.shiftamt.u32", "w=w", Map1<FindShift, u32, u32>),
    ROW("bfind.shiftamt.s32", "w=w", Map1<FindShift, u32, s32>),
    ROW("bfind.shiftamt.u64", "w=d", Map1<FindShift, u32, u64>),
    ROW("bfind.shiftamt.s64", "w=d", Map1<FindShift, u32, s64>),
    ROW("prmt.b32.f4e", "W=WWW", Map3<PermuteMode<Bytes::Forward>, u32, u32>),
    ROW("prmt.b32.b4e", "W=WWW", Map3<PermuteMode<Bytes::Backward>, u32, u32>),
    ROW("prmt.b32.rc8", "W=WWW", Map3<PermuteMode<Bytes::Replicate>, u32, u32>),
    ROW("prmt.b32.ecl", "W=WWW", Map3<PermuteMode<Bytes::ClampLeft>, u32, u32>),
    ROW("prmt.b32.ecr", "W=WWW", Map3<PermuteMode<Bytes::ClampRight>, u32, u32>),
    ROW("prmt.b32.rc16", "W=WWW", Map3<PermuteMode<Bytes::Replicate16>, u32, u32>),
    CARRIES("u32", u32, "w"),
    CARRIES("s32", u32, "w"),
    CARRIES("u64", u64, "d"),
    CARRIES("s64", u64, "d"),
    ROW("cvta.local.u64", "d=d", Map1<LocalToGeneric, u64, u64>),
    ROW("cvta.to.local.u64", "d=d", Map1<GenericToLocal, u64, u64>),
    ROW("cvta.shared::cta.u64", "d=d", Map1<SharedToGeneric, u64, u64>),
    ROW("cvta.to.shared::cta.u64", "d=d", Map1<GenericToShared, u64, u64>),
    ROW("cvta.param.u64", "d=d", Map1<Identity, u64, u64>),
    ROW("cvta.param::entry.u64", "d=d", Map1<Identity, u64, u64>),
    ROW("cvta.to.param.u64", "d=d", Map1<Identity, u64, u64>),
    ROW("cvta.to.param::entry.u64", "d=d", Map1<Identity, u64, u64>),
    ROW("isspacep.shared", "p=d", Test<IsInWindow<kSharedWindow>, u64>),
    ROW("isspacep.shared::cta", "p=d", Test<IsInWindow<kSharedWindow>, u64>),
    ROW("isspacep.shared::cluster", "p=d", Test<IsInWindow<kSharedWindow>, u64>),
    ROW("isspacep.local", "p=d", Test<IsInWindow<kLocalWindow>, u64>),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan rare_integer_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
