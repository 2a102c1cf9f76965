// SPDX-License-Identifier: Apache-2.0
// ld and st. Every access is checked. Lanes that follow each other in memory (the usual case) take one check and one
// vector copy; all others go lane by lane.

enum class Where { Global, Constant, Shared, Generic, Local };

/// The bytes of [address, address + bytes), null when they are not in one live allocation.
template <Where kWhere, bool kWrite>
VGPU_INLINE std::byte* locate(const Context& c, u64 address, u64 bytes) {
    if constexpr (kWhere == Where::Shared) {
        if (bytes > c.shared_bytes || address > c.shared_bytes - bytes) return nullptr;
        return c.shared + address;
    } else if constexpr (kWhere == Where::Local) {
        return nullptr;  // every lane has its own: locate_own
    } else {
        const u64 number = address >> kOffsetBits;
        if (kWhere == Where::Generic && number == kSharedWindow) {
            return locate<Where::Shared, kWrite>(c, address & kOffsetMask, bytes);
        }
        if (number >= c.allocation_count) return nullptr;
        const AllocationView& view = c.allocations[number];
        const u64 limit = kWrite ? view.writable_bytes : view.bytes;
        const u64 position = (address & kOffsetMask) - view.begin;
        if (bytes > limit || position > limit - bytes) return nullptr;
        return view.data + position;
    }
}

/// The same in the local memory of a lane.
template <Where kWhere>
VGPU_INLINE std::byte* locate_own(const Context& c, u64 address, u64 bytes, unsigned lane) {
    if (kWhere == Where::Generic && address >> kOffsetBits == kLocalWindow)
        address &= kOffsetMask;
    else if (kWhere != Where::Local)
        return nullptr;
    if (bytes > c.local_bytes || address > c.local_bytes - bytes) return nullptr;
    return c.local + lane * c.local_bytes + address;
}

/// Accounting of the bytes that lanes asked of global memory.
template <Where kWhere, bool kWrite>
VGPU_INLINE void count_bytes(Context& c, u64 address, u64 bytes) {
    if constexpr (kWhere == Where::Shared || kWhere == Where::Constant || kWhere == Where::Local) return;
    if (kWhere == Where::Generic && address >> kOffsetBits < kFirstAllocation) return;
    (kWrite ? c.global_bytes_written : c.global_bytes_read) += bytes;
}

/// Whether the lanes of `mask` address consecutive elements. `A` is the raw address type of the slot.
template <bool kMasked, unsigned kStride, class A>
VGPU_INLINE bool is_consecutive(const A* address, u32 mask, u64 lane0) {
    using Word = decltype(A{} + 0u);
    const Word first = static_cast<Word>(lane0);
    Word difference = 0;
    VGPU_LANES {
        const Word wrong = address[i] ^ static_cast<Word>(first + static_cast<Word>(i * kStride));
        difference |= kMasked ? (has_lane<A>(mask, i) ? wrong : 0) : wrong;
    }
    return difference == 0;
}

/// The address register of lane `i`, without the immediate.
template <class A>
VGPU_INLINE u64 address_of_lane(const A* address, const Op& op, unsigned i) {
    // Shared addresses of 32 bits wrap at 32 bits, as the hardware adds them.
    if constexpr (sizeof(A) == 4)
        return static_cast<u32>(address[i] + static_cast<u32>(op.immediate));
    else
        return address[i] + static_cast<u64>(static_cast<s64>(op.immediate));
}

/// Where the block of consecutive lanes lies: address of its first lane, and its bytes in host memory. Null: not so.
template <Where kWhere, bool kWrite, bool kMasked, unsigned kBytes, class A>
VGPU_INLINE std::byte* locate_run(Context& c, const Op& op, const A* address, unsigned& first, unsigned& count) {
    const u32 mask = kMasked ? c.mask : kFullMask;
    first = kMasked ? static_cast<unsigned>(__builtin_ctz(mask)) : 0;
    count = kMasked ? 32 - static_cast<unsigned>(__builtin_clz(mask)) - first : kLanes;
    const u64 lane0 = static_cast<u64>(address[first]) - u64{first} * kBytes;
    if (!is_consecutive<kMasked, kBytes>(address, mask, lane0)) return nullptr;
    const u64 start = address_of_lane(address, op, first);
    if (start % kBytes != 0) return nullptr;
    if constexpr (sizeof(A) == 4) {
        if (start + u64{count} * kBytes > (u64{1} << 32)) return nullptr;
    }
    std::byte* const data = locate<kWhere, kWrite>(c, start, u64{count} * kBytes);
    if (data) {
        const u64 lanes = kMasked ? static_cast<u64>(__builtin_popcount(mask)) : kLanes;
        count_bytes<kWhere, kWrite>(c, start, lanes * kBytes);
    }
    return data;
}

/// Any element type, any number of elements, any addresses: lane by lane.
template <Where kWhere, class A>
static void load_lanes(Context& c, const Op& op, u32 mask) {
    const A* const address = reinterpret_cast<const A*>(c.base[op.space[0]] + op.offset[0]);
    const unsigned size = op.lane_bytes, elements = op.elements;
    for (; mask != 0; mask &= mask - 1) {
        const auto i = static_cast<unsigned>(__builtin_ctz(mask));
        const u64 start = address_of_lane(address, op, i);
        const std::byte* data = locate<kWhere, false>(c, start, size * elements);
        if (!data) data = locate_own<kWhere>(c, start, size * elements, i);
        if (!data || start % (size * elements) != 0) memory_fault(c, op, start, i);
        count_bytes<kWhere, false>(c, start, size * elements);
        for (unsigned k = 0; k < elements; ++k, data += size) {
            u64 value = 0;
            __builtin_memcpy(&value, data, size);
            if (op.is_signed) value = static_cast<u64>(static_cast<s64>(value << (64 - 8 * size)) >> (64 - 8 * size));
            if (size == 8)
                slot<u64>(c, op, k + 1)[i] = value;
            else
                slot<u32>(c, op, k + 1)[i] = static_cast<u32>(value);
        }
    }
}

template <Where kWhere, class A>
static void store_lanes(Context& c, const Op& op, u32 mask) {
    const A* const address = reinterpret_cast<const A*>(c.base[op.space[0]] + op.offset[0]);
    const unsigned size = op.lane_bytes, elements = op.elements;
    for (; mask != 0; mask &= mask - 1) {
        const auto i = static_cast<unsigned>(__builtin_ctz(mask));
        const u64 start = address_of_lane(address, op, i);
        std::byte* data = locate<kWhere, true>(c, start, size * elements);
        if (!data) data = locate_own<kWhere>(c, start, size * elements, i);
        if (!data || start % (size * elements) != 0) memory_fault(c, op, start, i);
        count_bytes<kWhere, true>(c, start, size * elements);
        for (unsigned k = 0; k < elements; ++k, data += size) {
            const u64 value = size == 8 ? slot<u64>(c, op, k + 1)[i] : slot<u32>(c, op, k + 1)[i];
            __builtin_memcpy(data, &value, size);
        }
    }
}

/// The next warps go on behind this one: fetch what they will touch. Never faults, wherever it points.
template <bool kWrite, unsigned kBytes>
VGPU_INLINE void fetch_ahead(const std::byte* data) {
    constexpr unsigned kAhead = 4 * kLanes * kBytes;
    for (unsigned line = 0; line < kLanes * kBytes; line += 64) __builtin_prefetch(data + kAhead + line, kWrite);
}

/// One element of T (u16, u32 or u64) a lane, zero-extended. `A` is u64, or u32 for shared addresses of 32 bits.
template <Where kWhere, class T, class A>
struct Load {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const auto* const address = slot<A>(c, op, 0);
        auto* const d = slot<T>(c, op, 1);
        const u32 mask = kMasked ? c.mask : kFullMask;
        unsigned first, count;
        const std::byte* const data = locate_run<kWhere, false, kMasked, sizeof(T)>(c, op, address, first, count);
        if (!data) return load_lanes<kWhere, typename Slot<A>::Raw>(c, op, mask);
        if constexpr (!kMasked && kWhere == Where::Global) fetch_ahead<false, sizeof(T)>(data);
        if constexpr (kMasked) {
            for (unsigned i = first; i < first + count; ++i) {
                T value;
                __builtin_memcpy(&value, data + (i - first) * sizeof(T), sizeof(T));
                if (mask & kBit32[i]) d[i] = value;
            }
        } else if constexpr (sizeof(T) == 2) {
            T values[kLanes];
            __builtin_memcpy(values, data, sizeof(values));
            VGPU_LANES d[i] = values[i];
        } else {
            __builtin_memcpy(d, data, kLanes * sizeof(T));
        }
    }
};

template <Where kWhere, class T, class A>
struct Store {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const auto* const address = slot<A>(c, op, 0);
        const auto* const source = slot<T>(c, op, 1);
        const u32 mask = kMasked ? c.mask : kFullMask;
        unsigned first, count;
        std::byte* const data = locate_run<kWhere, true, kMasked, sizeof(T)>(c, op, address, first, count);
        if (!data) return store_lanes<kWhere, typename Slot<A>::Raw>(c, op, mask);
        if constexpr (!kMasked && kWhere == Where::Global) fetch_ahead<true, sizeof(T)>(data);
        if constexpr (kMasked) {
            for (unsigned i = first; i < first + count; ++i) {
                const T value = static_cast<T>(source[i]);
                if (mask & kBit32[i]) __builtin_memcpy(data + (i - first) * sizeof(T), &value, sizeof(T));
            }
        } else if constexpr (sizeof(T) == 2) {
            T values[kLanes];
            VGPU_LANES values[i] = static_cast<T>(source[i]);
            __builtin_memcpy(data, values, sizeof(values));
        } else {
            __builtin_memcpy(data, source, kLanes * sizeof(T));
        }
    }
};

/// Bytes, signed narrow elements and vectors.
template <Where kWhere, class A>
struct LoadAny {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        load_lanes<kWhere, typename Slot<A>::Raw>(c, op, kMasked ? c.mask : kFullMask);
    }
};
template <Where kWhere, class A>
struct StoreAny {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        store_lanes<kWhere, typename Slot<A>::Raw>(c, op, kMasked ? c.mask : kFullMask);
    }
};
