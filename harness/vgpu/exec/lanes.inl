// SPDX-License-Identifier: Apache-2.0
// Lane loops over register slots. Part of the multi-versioned files: everything here has internal linkage, and nothing
// of the standard library is called, so that no AVX code can leak through a shared inline function.

#define VGPU_INLINE [[gnu::always_inline]] static inline

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
// Wrappers keep 16-bit floats apart from 16-bit integers in the tables.
struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

VGPU_INLINE u32 bits_of(float value) { return __builtin_bit_cast(u32, value); }
VGPU_INLINE u64 bits_of(double value) { return __builtin_bit_cast(u64, value); }
VGPU_INLINE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
VGPU_INLINE double double_of(u64 bits) { return __builtin_bit_cast(double, bits); }

// ---- slots -------------------------------------------------------------------------------------------------------
// 8, 16 and 32 bits live in slots of 32 lanes of 4 bytes, 64 bits in slots of 8. A handler reads the low bits of a
// slot and writes the value extended by its own sign.

template <class T>
struct Slot {
    using Raw [[gnu::may_alias]] = u32;
    VGPU_INLINE T read(Raw raw) { return static_cast<T>(raw); }
    VGPU_INLINE u32 write(T value) { return static_cast<u32>(static_cast<s32>(value)); }
};
template <>
struct Slot<u32> {
    using Raw [[gnu::may_alias]] = u32;
    VGPU_INLINE u32 read(Raw raw) { return raw; }
    VGPU_INLINE u32 write(u32 value) { return value; }
};
template <>
struct Slot<f16> {
    using Raw [[gnu::may_alias]] = u32;
    VGPU_INLINE f16 read(Raw raw) { return {static_cast<u16>(raw)}; }
    VGPU_INLINE u32 write(f16 value) { return value.bits; }
};
template <>
struct Slot<bf16> {
    using Raw [[gnu::may_alias]] = u32;
    VGPU_INLINE bf16 read(Raw raw) { return {static_cast<u16>(raw)}; }
    VGPU_INLINE u32 write(bf16 value) { return value.bits; }
};
template <>
struct Slot<float> {
    using Raw [[gnu::may_alias]] = float;
    VGPU_INLINE float read(Raw raw) { return raw; }
    VGPU_INLINE float write(float value) { return value; }
};
template <>
struct Slot<double> {
    using Raw [[gnu::may_alias]] = double;
    VGPU_INLINE double read(Raw raw) { return raw; }
    VGPU_INLINE double write(double value) { return value; }
};
template <>
struct Slot<u64> {
    using Raw [[gnu::may_alias]] = u64;
    VGPU_INLINE u64 read(Raw raw) { return raw; }
    VGPU_INLINE u64 write(u64 value) { return value; }
};
template <>
struct Slot<s64> {
    using Raw [[gnu::may_alias]] = u64;
    VGPU_INLINE s64 read(Raw raw) { return static_cast<s64>(raw); }
    VGPU_INLINE u64 write(s64 value) { return static_cast<u64>(value); }
};

template <class T>
VGPU_INLINE typename Slot<T>::Raw* slot(Context& c, const Op& op, unsigned operand) {
    return reinterpret_cast<typename Slot<T>::Raw*>(
        __builtin_assume_aligned(c.base[op.space[operand]] + op.offset[operand], 64));
}
VGPU_INLINE u32& predicate(Context& c, const Op& op, unsigned operand) {
    using Word [[gnu::may_alias]] = u32;
    return *reinterpret_cast<Word*>(c.base[op.space[operand]] + op.offset[operand]);
}

alignas(64) static const u32 kBit32[kLanes] = {
    1U << 0,  1U << 1,  1U << 2,  1U << 3,  1U << 4,  1U << 5,  1U << 6,  1U << 7,  1U << 8,  1U << 9,  1U << 10,
    1U << 11, 1U << 12, 1U << 13, 1U << 14, 1U << 15, 1U << 16, 1U << 17, 1U << 18, 1U << 19, 1U << 20, 1U << 21,
    1U << 22, 1U << 23, 1U << 24, 1U << 25, 1U << 26, 1U << 27, 1U << 28, 1U << 29, 1U << 30, 1U << 31};
alignas(64) static const u64 kBit64[kLanes] = {
    1ULL << 0,  1ULL << 1,  1ULL << 2,  1ULL << 3,  1ULL << 4,  1ULL << 5,  1ULL << 6,  1ULL << 7,
    1ULL << 8,  1ULL << 9,  1ULL << 10, 1ULL << 11, 1ULL << 12, 1ULL << 13, 1ULL << 14, 1ULL << 15,
    1ULL << 16, 1ULL << 17, 1ULL << 18, 1ULL << 19, 1ULL << 20, 1ULL << 21, 1ULL << 22, 1ULL << 23,
    1ULL << 24, 1ULL << 25, 1ULL << 26, 1ULL << 27, 1ULL << 28, 1ULL << 29, 1ULL << 30, 1ULL << 31};

/// Whether lane `i` is in `mask`, in a form that vectorizes at the width of T.
template <class T>
VGPU_INLINE bool has_lane(u32 mask, unsigned i) {
    if constexpr (sizeof(T) == 8)
        return (static_cast<u64>(mask) & kBit64[i]) != 0;
    else
        return (mask & kBit32[i]) != 0;
}

// Source and destination slots are the same or apart, never shifted against each other: lanes are independent.
#if defined(__clang__)
#define VGPU_LANES _Pragma("clang loop vectorize(assume_safety)") for (unsigned i = 0; i < kLanes; ++i)
#else
#define VGPU_LANES _Pragma("GCC ivdep") for (unsigned i = 0; i < kLanes; ++i)
#endif

template <bool kMasked, class D>
VGPU_INLINE void put(typename Slot<D>::Raw* d, unsigned i, u32 mask, D value) {
    const auto fresh = Slot<D>::write(value);
    if constexpr (kMasked) {
        const auto old = d[i];
        d[i] = has_lane<typename Slot<D>::Raw>(mask, i) ? fresh : old;
    } else {
        d[i] = fresh;
    }
}

/// Lanes whose flag is not 0 (flags are 0 or all ones).
VGPU_INLINE u32 mask_of(const u32* flags) {
#if defined(__AVX512F__)
    const __m512i low = _mm512_load_si512(flags), high = _mm512_load_si512(flags + 16);
    return static_cast<u32>(_mm512_test_epi32_mask(low, low)) | static_cast<u32>(_mm512_test_epi32_mask(high, high))
                                                                    << 16;
#elif defined(__AVX2__)
    u32 mask = 0;
    for (unsigned k = 0; k < 4; ++k) {
        const __m256 part = _mm256_load_ps(reinterpret_cast<const float*>(flags + 8 * k));
        mask |= static_cast<u32>(_mm256_movemask_ps(part)) << (8 * k);
    }
    return mask;
#elif defined(__SSE2__)
    u32 mask = 0;
    for (unsigned k = 0; k < 8; ++k) {
        const __m128 part = _mm_load_ps(reinterpret_cast<const float*>(flags + 4 * k));
        mask |= static_cast<u32>(_mm_movemask_ps(part)) << (4 * k);
    }
    return mask;
#else
    u32 mask = 0;
    for (unsigned i = 0; i < kLanes; ++i) mask |= flags[i] & kBit32[i];
    return mask;
#endif
}

// ---- shapes of handlers --------------------------------------------------------------------------------------------

template <class F, class D, class A>
struct Map1 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        auto* const d = slot<D>(c, op, 0);
        const auto* const a = slot<A>(c, op, 1);
        [[maybe_unused]] const u32 mask = c.mask;
        VGPU_LANES put<kMasked, D>(d, i, mask, F::apply(Slot<A>::read(a[i])));
    }
};

template <class F, class D, class A, class B = A>
struct Map2 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        auto* const d = slot<D>(c, op, 0);
        const auto* const a = slot<A>(c, op, 1);
        const auto* const b = slot<B>(c, op, 2);
        [[maybe_unused]] const u32 mask = c.mask;
        VGPU_LANES put<kMasked, D>(d, i, mask, F::apply(Slot<A>::read(a[i]), Slot<B>::read(b[i])));
    }
};

template <class F, class D, class A, class B = A, class C = A>
struct Map3 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        auto* const d = slot<D>(c, op, 0);
        const auto* const a = slot<A>(c, op, 1);
        const auto* const b = slot<B>(c, op, 2);
        const auto* const e = slot<C>(c, op, 3);
        [[maybe_unused]] const u32 mask = c.mask;
        VGPU_LANES put<kMasked, D>(d, i, mask, F::apply(Slot<A>::read(a[i]), Slot<B>::read(b[i]), Slot<C>::read(e[i])));
    }
};

/// Two sources to a predicate.
template <class F, class A>
struct Compare {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const auto* const a = slot<A>(c, op, 1);
        const auto* const b = slot<A>(c, op, 2);
        alignas(64) u32 flags[kLanes];
        VGPU_LANES flags[i] = F::apply(Slot<A>::read(a[i]), Slot<A>::read(b[i])) ? kFullMask : 0;
        u32& d = predicate(c, op, 0);
        const u32 result = mask_of(flags);
        d = kMasked ? (d & ~c.mask) | (result & c.mask) : result;
    }
};

/// One source to a predicate.
template <class F, class A>
struct Test {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const auto* const a = slot<A>(c, op, 1);
        alignas(64) u32 flags[kLanes];
        VGPU_LANES flags[i] = F::apply(Slot<A>::read(a[i])) ? kFullMask : 0;
        u32& d = predicate(c, op, 0);
        const u32 result = mask_of(flags);
        d = kMasked ? (d & ~c.mask) | (result & c.mask) : result;
    }
};

template <class A>
struct Select {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        auto* const d = slot<A>(c, op, 0);
        const auto* const a = slot<A>(c, op, 1);
        const auto* const b = slot<A>(c, op, 2);
        const u32 choice = predicate(c, op, 3);
        [[maybe_unused]] const u32 mask = c.mask;
        VGPU_LANES {
            const auto x = a[i], y = b[i];
            const A value = Slot<A>::read(has_lane<typename Slot<A>::Raw>(choice, i) ? x : y);
            put<kMasked, A>(d, i, mask, value);
        }
    }
};

/// Predicates are words: all lanes at once.
template <class F>
struct Predicate2 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const u32 result = F::apply(predicate(c, op, 1), predicate(c, op, 2));
        u32& d = predicate(c, op, 0);
        d = kMasked ? (d & ~c.mask) | (result & c.mask) : result;
    }
};
template <class F>
struct Predicate1 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const u32 result = F::apply(predicate(c, op, 1));
        u32& d = predicate(c, op, 0);
        d = kMasked ? (d & ~c.mask) | (result & c.mask) : result;
    }
};
/// No source: a constant predicate.
template <u32 kValue>
struct PredicateSet {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        u32& d = predicate(c, op, 0);
        d = kMasked ? (d & ~c.mask) | (kValue & c.mask) : kValue;
    }
};
struct Nothing {
    template <bool kMasked>
    static void run(Context&, const Op&) {}
};
