// SPDX-License-Identifier: Apache-2.0
// Integer and bit operations of one lane. Arithmetic wraps; shifts clamp.

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<u8> {
    using Type = u32;
};
template <>
struct UnsignedOf<s8> {
    using Type = u32;
};
template <>
struct UnsignedOf<u16> {
    using Type = u32;
};
template <>
struct UnsignedOf<s16> {
    using Type = u32;
};
template <>
struct UnsignedOf<u32> {
    using Type = u32;
};
template <>
struct UnsignedOf<s32> {
    using Type = u32;
};
template <>
struct UnsignedOf<u64> {
    using Type = u64;
};
template <>
struct UnsignedOf<s64> {
    using Type = u64;
};
template <class T>
using Wrap = typename UnsignedOf<T>::Type;  // wide enough not to be promoted to int

template <class T>
struct WiderOf;
template <>
struct WiderOf<u16> {
    using Type = u32;
};
template <>
struct WiderOf<s16> {
    using Type = s32;
};
template <>
struct WiderOf<u32> {
    using Type = u64;
};
template <>
struct WiderOf<s32> {
    using Type = s64;
};
template <>
struct WiderOf<u64> {
    using Type = unsigned __int128;
};
template <>
struct WiderOf<s64> {
    using Type = __int128;
};
template <class T>
using Wider = typename WiderOf<T>::Type;

template <class T>
inline constexpr bool kIsSigned = T(-1) < T(0);
template <class T>
inline constexpr unsigned kBits = 8 * sizeof(T);
template <class T>
inline constexpr T kLeast = kIsSigned<T> ? T(Wrap<T>(1) << (kBits<T> - 1)) : T(0);
template <class T>
inline constexpr T kGreatest = T(~Wrap<T>(kLeast<T>));

struct IntAdd {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T(Wrap<T>(a) + Wrap<T>(b));
    }
};
struct IntSubtract {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T(Wrap<T>(a) - Wrap<T>(b));
    }
};
struct IntAddSaturated {
    VGPU_INLINE s32 apply(s32 a, s32 b) {
        const s64 r = s64{a} + b;
        return r > kGreatest<s32> ? kGreatest<s32> : r < kLeast<s32> ? kLeast<s32> : static_cast<s32>(r);
    }
};
struct IntSubtractSaturated {
    VGPU_INLINE s32 apply(s32 a, s32 b) {
        const s64 r = s64{a} - b;
        return r > kGreatest<s32> ? kGreatest<s32> : r < kLeast<s32> ? kLeast<s32> : static_cast<s32>(r);
    }
};
struct MultiplyLow {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T(Wrap<T>(a) * Wrap<T>(b));
    }
};
struct MultiplyHigh {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T((Wider<T>(a) * Wider<T>(b)) >> kBits<T>);
    }
};
struct MultiplyWide {
    template <class T>
    VGPU_INLINE Wider<T> apply(T a, T b) {
        return Wider<T>(a) * Wider<T>(b);
    }
};
struct MadLow {
    template <class T>
    VGPU_INLINE T apply(T a, T b, T c) {
        return T(Wrap<T>(a) * Wrap<T>(b) + Wrap<T>(c));
    }
};
struct MadHigh {
    template <class T>
    VGPU_INLINE T apply(T a, T b, T c) {
        return IntAdd::apply(MultiplyHigh::apply(a, b), c);
    }
};
struct MadWide {
    template <class T>
    VGPU_INLINE Wider<T> apply(T a, T b, Wider<T> c) {
        return IntAdd::apply(MultiplyWide::apply(a, b), c);
    }
};
/// Division by zero has no defined result in PTX; hardware gives all ones, and the dividend as the remainder.
struct IntDivide {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        if (b == 0) return T(~Wrap<T>(0));
        if constexpr (kIsSigned<T>) {
            if (b == T(-1)) return T(Wrap<T>(0) - Wrap<T>(a));
        }
        return T(a / b);
    }
};
struct IntRemainder {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        if (b == 0) return a;
        if constexpr (kIsSigned<T>) {
            if (b == T(-1)) return 0;
        }
        return T(a % b);
    }
};
struct IntMinimum {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return a < b ? a : b;
    }
};
struct IntMaximum {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return a > b ? a : b;
    }
};
struct IntAbsolute {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return a < 0 ? T(Wrap<T>(0) - Wrap<T>(a)) : a;
    }
};
struct IntNegate {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return T(Wrap<T>(0) - Wrap<T>(a));
    }
};
struct BitAnd {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T(a & b);
    }
};
struct BitOr {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T(a | b);
    }
};
struct BitXor {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return T(a ^ b);
    }
};
struct BitNot {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return T(~a);
    }
};
struct LogicalNot {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return T(a == 0);
    }
};
struct ShiftLeft {
    template <class T>
    VGPU_INLINE T apply(T a, u32 n) {
        return n < kBits<T> ? T(Wrap<T>(a) << (n & (kBits<T> - 1))) : T(0);
    }
};
struct ShiftRight {
    template <class T>
    VGPU_INLINE T apply(T a, u32 n) {
        if constexpr (kIsSigned<T>)
            return T(a >> (n < kBits<T> ? n : kBits<T> - 1));
        else
            return n < kBits<T> ? T(a >> (n & (kBits<T> - 1))) : T(0);
    }
};
struct PopulationCount {
    VGPU_INLINE u32 apply(u32 a) {
        a = a - ((a >> 1) & 0x55555555U);
        a = (a & 0x33333333U) + ((a >> 2) & 0x33333333U);
        return (((a + (a >> 4)) & 0x0F0F0F0FU) * 0x01010101U) >> 24;
    }
    VGPU_INLINE u32 apply(u64 a) { return apply(static_cast<u32>(a)) + apply(static_cast<u32>(a >> 32)); }
};
struct CountLeadingZeros {
    VGPU_INLINE u32 apply(u32 a) { return a == 0 ? 32 : static_cast<u32>(__builtin_clz(a)); }
    VGPU_INLINE u32 apply(u64 a) { return a == 0 ? 64 : static_cast<u32>(__builtin_clzll(a)); }
};
/// Position of the most significant bit that differs from the sign, all ones if there is none.
struct FindBit {
    template <class T>
    VGPU_INLINE u32 apply(T a) {
        const Wrap<T> bits = Wrap<T>(kIsSigned<T> && a < T(0) ? T(~a) : a);
        return bits == 0 ? kFullMask : kBits<T> - 1 - CountLeadingZeros::apply(bits);
    }
};
struct BitReverse {
    VGPU_INLINE u32 apply(u32 a) {
        a = ((a >> 1) & 0x55555555U) | ((a & 0x55555555U) << 1);
        a = ((a >> 2) & 0x33333333U) | ((a & 0x33333333U) << 2);
        a = ((a >> 4) & 0x0F0F0F0FU) | ((a & 0x0F0F0F0FU) << 4);
        return __builtin_bswap32(a);
    }
    VGPU_INLINE u64 apply(u64 a) {
        return static_cast<u64>(apply(static_cast<u32>(a))) << 32 | apply(static_cast<u32>(a >> 32));
    }
};
/// Position and length count modulo 256; bits beyond the top repeat the sign.
struct BitFieldExtract {
    template <class T>
    VGPU_INLINE T apply(T a, u32 position, u32 length) {
        position &= 0xFF;
        length &= 0xFF;
        constexpr u32 kTop = kBits<T> - 1;
        const u32 last = position + length - 1 < kTop ? position + length - 1 : kTop;
        const bool sign = kIsSigned<T> && length != 0 && ((Wrap<T>(a) >> last) & 1) != 0;
        const Wrap<T> field = position > kTop ? 0 : Wrap<T>(a) >> position;
        if (length == 0) return 0;
        const Wrap<T> kept = length > kTop ? ~Wrap<T>(0) : (Wrap<T>(1) << length) - 1;
        const Wrap<T> available = position > kTop ? 0 : ~Wrap<T>(0) >> position;
        const Wrap<T> value = field & kept;
        return T(sign ? value | ~(kept & available) : value);
    }
};
struct BitFieldInsert {
    template <class T>
    VGPU_INLINE T apply(T a, T b, u32 position, u32 length) {
        position &= 0xFF;
        length &= 0xFF;
        constexpr u32 kTop = kBits<T> - 1;
        if (position > kTop || length == 0) return b;
        const T kept = (length > kTop ? ~T(0) : (T(1) << length) - 1) << position;
        return (b & ~kept) | ((a << position) & kept);
    }
};
/// Bit i of the table is the result for bits (a, b, c) that spell i.
struct Logic3 {
    VGPU_INLINE u32 apply(u32 a, u32 b, u32 c, u32 table) {
        u32 r = 0;
        for (unsigned i = 0; i < 8; ++i) {
            const u32 match = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
            r |= (table >> i) & 1 ? match : 0;
        }
        return r;
    }
};
struct Permute {
    VGPU_INLINE u32 apply(u32 a, u32 b, u32 selectors) {
        const u64 bytes = static_cast<u64>(b) << 32 | a;
        u32 r = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const u32 selector = (selectors >> (4 * i)) & 0xF;
            u32 byte = static_cast<u32>(bytes >> (8 * (selector & 7))) & 0xFF;
            if (selector & 8) byte = byte & 0x80 ? 0xFF : 0;
            r |= byte << (8 * i);
        }
        return r;
    }
};
template <bool kLeft, bool kClamp>
struct FunnelShift {
    VGPU_INLINE u32 apply(u32 a, u32 b, u32 n) {
        n = kClamp ? (n < 32 ? n : 32) : n & 31;
        const u64 both = static_cast<u64>(b) << 32 | a;
        return kLeft ? static_cast<u32>(both << n >> 32) : static_cast<u32>(both >> n);
    }
};

#define VGPU_INT_COMPARE(Name, condition)  \
    struct Name {                          \
        template <class T>                 \
        VGPU_INLINE bool apply(T a, T b) { \
            return condition;              \
        }                                  \
    };
VGPU_INT_COMPARE(IntEqual, a == b)
VGPU_INT_COMPARE(IntNotEqual, a != b)
VGPU_INT_COMPARE(IntLess, a < b)
VGPU_INT_COMPARE(IntLessEqual, a <= b)
VGPU_INT_COMPARE(IntGreater, a > b)
VGPU_INT_COMPARE(IntGreaterEqual, a >= b)
#undef VGPU_INT_COMPARE

// ---- moves, packs and addresses ------------------------------------------------------------------------------------
struct Identity {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return a;
    }
};
template <class D>
struct CastTo {
    template <class S>
    VGPU_INLINE D apply(S a) {
        return static_cast<D>(a);
    }
};
template <class D>
struct CastSaturated {
    template <class S>
    VGPU_INLINE D apply(S a) {
        const __int128 value = a;  // NOLINT(bugprone-signed-char-misuse): a number, not a character
        return value > kGreatest<D> ? kGreatest<D> : value < kLeast<D> ? kLeast<D> : static_cast<D>(a);
    }
};
struct PackHalves {
    VGPU_INLINE u32 apply(u16 low, u16 high) { return low | static_cast<u32>(high) << 16; }
};
struct PackWords {
    VGPU_INLINE u64 apply(u32 low, u32 high) { return low | static_cast<u64>(high) << 32; }
};
struct HighHalf {
    VGPU_INLINE u16 apply(u32 a) { return static_cast<u16>(a >> 16); }
};
struct HighWord {
    VGPU_INLINE u32 apply(u64 a) { return static_cast<u32>(a >> 32); }
};
struct SharedToGeneric {
    VGPU_INLINE u64 apply(u64 a) { return a + (kSharedWindow << kOffsetBits); }
};
struct GenericToShared {
    VGPU_INLINE u64 apply(u64 a) { return a - (kSharedWindow << kOffsetBits); }
};

/// Four sources do not fit the common shapes.
template <class F, class T, class C>
struct Map4 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        auto* const d = slot<T>(c, op, 0);
        const auto* const a = slot<T>(c, op, 1);
        const auto* const b = slot<T>(c, op, 2);
        const auto* const e = slot<C>(c, op, 3);
        const auto* const f = slot<C>(c, op, 4);
        [[maybe_unused]] const u32 mask = c.mask;
        VGPU_LANES put<kMasked, T>(
            d, i, mask, F::apply(Slot<T>::read(a[i]), Slot<T>::read(b[i]), Slot<C>::read(e[i]), Slot<C>::read(f[i])));
    }
};
