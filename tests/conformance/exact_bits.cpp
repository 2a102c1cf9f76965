// SPDX-License-Identifier: Apache-2.0
// Logic, shifts and bit fields, one bit at a time as the manual's pseudo-code has them.
#include <algorithm>

#include "tests/conformance/exact_int.h"

namespace gradguard::conformance {

namespace {

bool bit(Bits value, int position) { return ((value >> position) & 1) != 0; }

}  // namespace

Bits cnot(int bits, Bits a) { return (a & ones(bits)) == 0 ? 1 : 0; }

Bits lop3(int bits, Bits a, Bits b, Bits c, unsigned table) {
    Bits result = 0;
    for (int i = 0; i < bits; ++i) {
        const int index = (bit(a, i) ? 4 : 0) + (bit(b, i) ? 2 : 0) + (bit(c, i) ? 1 : 0);
        if (bit(table, index)) result |= Bits{1} << i;
    }
    return result;
}

Bits shl(int bits, Bits a, std::uint32_t amount) {
    const Wide value = static_cast<Wide>(a & ones(bits)) << std::min<std::uint32_t>(amount, 64);
    return static_cast<Bits>(value) & ones(bits);
}

Bits shr(IntFormat format, Bits a, std::uint32_t amount) {
    return pattern_of(format, value_of(format, a) >> std::min<std::uint32_t>(amount, 64));
}

Bits funnel(bool left, bool wrap, Bits a, Bits b, std::uint32_t amount) {
    const std::uint32_t n = wrap ? amount & 31 : std::min<std::uint32_t>(amount, 32);
    const Wide pair = (static_cast<Wide>(b & ones(32)) << 32) | (a & ones(32));
    return static_cast<Bits>(left ? (pair << n) >> 32 : pair >> n) & ones(32);
}

Bits popc(int bits, Bits a) {
    Bits count = 0;
    for (int i = 0; i < bits; ++i) count += bit(a, i) ? 1 : 0;
    return count;
}

Bits clz(int bits, Bits a) {
    Bits count = 0;
    for (int i = bits - 1; i >= 0 && !bit(a, i); --i) ++count;
    return count;
}

Bits brev(int bits, Bits a) {
    Bits result = 0;
    for (int i = 0; i < bits; ++i) {
        if (bit(a, i)) result |= Bits{1} << (bits - 1 - i);
    }
    return result;
}

Bits bfind(IntFormat format, Bits a, bool shift_amount) {
    const int msb = format.bits - 1;
    if (format.is_signed && bit(a, msb)) a = ~a;
    for (int i = msb; i >= 0; --i) {
        if (bit(a, i)) return static_cast<Bits>(shift_amount ? msb - i : i);
    }
    return ones(32);
}

Bits bfe(IntFormat format, Bits a, std::uint32_t position, std::uint32_t length) {
    const int msb = format.bits - 1;
    const int pos = static_cast<int>(position & 0xff);
    const int len = static_cast<int>(length & 0xff);
    const bool sign = format.is_signed && len != 0 && bit(a, std::min(pos + len - 1, msb));
    Bits result = 0;
    for (int i = 0; i <= msb; ++i) {
        if (i < len && pos + i <= msb ? bit(a, pos + i) : sign) result |= Bits{1} << i;
    }
    return result;
}

Bits bfi(int bits, Bits a, Bits b, std::uint32_t position, std::uint32_t length) {
    const int msb = bits - 1;
    const int pos = static_cast<int>(position & 0xff);
    const int len = static_cast<int>(length & 0xff);
    Bits result = b & ones(bits);
    for (int i = 0; i < len && pos + i <= msb; ++i) {
        const Bits place = Bits{1} << (pos + i);
        result = bit(a, i) ? result | place : result & ~place;
    }
    return result;
}

Bits bmsk(bool clamp, std::uint32_t position, std::uint32_t width) {
    const std::uint32_t start = clamp ? position : position & 31;
    const std::uint32_t count = clamp ? width : width & 31;
    Bits result = 0;
    for (std::uint64_t i = 0; i < 32; ++i) {
        if (i >= start && i < std::uint64_t{start} + count) result |= Bits{1} << i;
    }
    return result;
}

Bits szext(bool clamp, bool is_signed, Bits a, std::uint32_t width) {
    const int kept = static_cast<int>(clamp ? std::min<std::uint32_t>(width, 32) : width & 31);
    const bool sign = is_signed && kept != 0 && kept < 32 && bit(a, kept - 1);
    Bits result = 0;
    for (int i = 0; i < 32; ++i) {
        if (i < kept ? bit(a, i) : sign) result |= Bits{1} << i;
    }
    return result;
}

Bits fns(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
    if (offset == 0) return base < 32 && bit(mask, static_cast<int>(base)) ? base : ones(32);
    std::int64_t count = (offset < 0 ? -std::int64_t{offset} : offset) - 1;
    for (std::int64_t pos = base; pos >= 0 && pos<32; pos += offset> 0 ? 1 : -1) {
        if (bit(mask, static_cast<int>(pos)) && count-- == 0) return static_cast<Bits>(pos);
    }
    return ones(32);
}

Bits prmt(PermuteMode mode, Bits a, Bits b, Bits c) {
    const Bits pair = ((b & ones(32)) << 32) | (a & ones(32));
    const int control = static_cast<int>(c & 3);
    Bits result = 0;
    for (int i = 0; i < 4; ++i) {
        int source = 0;
        bool replicate_sign = false;
        switch (mode) {
            case PermuteMode::Index:
                source = static_cast<int>((c >> (4 * i)) & 7);
                replicate_sign = bit(c, 4 * i + 3);
                break;
            case PermuteMode::F4e:
                source = control + i;
                break;
            case PermuteMode::B4e:
                source = (control + 8 - i) % 8;
                break;
            case PermuteMode::Rc8:
                source = control;
                break;
            case PermuteMode::Ecl:
                source = std::max(i, control);
                break;
            case PermuteMode::Ecr:
                source = std::min(i, control);
                break;
            case PermuteMode::Rc16:
                source = (control & 1) * 2 + (i & 1);
                break;
        }
        Bits byte = (pair >> (8 * source)) & 0xff;
        if (replicate_sign) byte = bit(byte, 7) ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

}  // namespace gradguard::conformance
