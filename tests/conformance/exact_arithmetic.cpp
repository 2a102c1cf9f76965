// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exact_float.h"

namespace gradguard::conformance {

namespace {

/// Orders finite numbers and infinities: -0 directly below +0.
std::int64_t order_key(Format format, Bits bits) {
    const auto magnitude = static_cast<std::int64_t>(bits & magnitude_mask(format));
    return is_negative(format, bits) ? -1 - magnitude : magnitude;
}

Bits min_max(Format format, Bits a, Bits b, const MinMaxMode& mode, bool greater) {
    if (mode.ftz) {
        a = flushed(format, a);
        b = flushed(format, b);
    }
    const Bits sign = (a ^ b) & sign_mask(format);
    if (mode.xorsign_abs) {
        a &= magnitude_mask(format);
        b &= magnitude_mask(format);
    }
    const bool a_nan = is_nan(format, a);
    const bool b_nan = is_nan(format, b);
    if ((a_nan && b_nan) || (mode.nan && (a_nan || b_nan))) return canonical_nan(format);
    Bits result = 0;
    if (a_nan || b_nan) {
        result = a_nan ? b : a;
    } else {
        result = (order_key(format, a) < order_key(format, b)) != greater ? a : b;
    }
    return mode.xorsign_abs ? result | sign : result;
}

}  // namespace

Bits add(Format format, Bits a, Bits b, const Mode& mode) {
    return finish(format, exact_sum(unpack(format, a, mode.ftz), unpack(format, b, mode.ftz), mode.rounding), mode);
}

Bits sub(Format format, Bits a, Bits b, const Mode& mode) { return add(format, a, b ^ sign_mask(format), mode); }

Bits mul(Format format, Bits a, Bits b, const Mode& mode) {
    return finish(format, exact_product(unpack(format, a, mode.ftz), unpack(format, b, mode.ftz)), mode);
}

Bits fma(Format format, Bits a, Bits b, Bits c, const Mode& mode) {
    const Number product = exact_product(unpack(format, a, mode.ftz), unpack(format, b, mode.ftz));
    return finish(format, exact_sum(product, unpack(format, c, mode.ftz), mode.rounding), mode);
}

Bits div(Format format, Bits a, Bits b, const Mode& mode) {
    return finish(format, exact_quotient(unpack(format, a, mode.ftz), unpack(format, b, mode.ftz)), mode);
}

Bits sqrt(Format format, Bits a, const Mode& mode) {
    return finish(format, exact_root(unpack(format, a, mode.ftz)), mode);
}

Bits rcp(Format format, Bits a, const Mode& mode) {
    return finish(format, exact_quotient(unpack(format, one(format)), unpack(format, a, mode.ftz)), mode);
}

Bits min(Format format, Bits a, Bits b, const MinMaxMode& mode) { return min_max(format, a, b, mode, false); }

Bits max(Format format, Bits a, Bits b, const MinMaxMode& mode) { return min_max(format, a, b, mode, true); }

Bits abs(Format format, Bits a, bool ftz) { return (ftz ? flushed(format, a) : a) & magnitude_mask(format); }

Bits neg(Format format, Bits a, bool ftz) { return (ftz ? flushed(format, a) : a) ^ sign_mask(format); }

Bits copysign(Format format, Bits a, Bits b) { return (a & sign_mask(format)) | (b & magnitude_mask(format)); }

bool testp(Format format, TestOp op, Bits a) {
    switch (op) {
        case TestOp::Finite:
            return !is_nan(format, a) && !is_infinite(format, a);
        case TestOp::Infinite:
            return is_infinite(format, a);
        case TestOp::Number:
            return !is_nan(format, a);
        case TestOp::NotANumber:
            return is_nan(format, a);
        case TestOp::Normal:
            return !is_nan(format, a) && !is_infinite(format, a) && !is_subnormal(format, a);
        case TestOp::Subnormal:
            return is_subnormal(format, a);
    }
    return false;
}

bool compare(Format format, CompareOp op, Bits a, Bits b, bool ftz) {
    if (ftz) {
        a = flushed(format, a);
        b = flushed(format, b);
    }
    const bool unordered = is_nan(format, a) || is_nan(format, b);
    const bool equal = a == b || (is_zero(format, a) && is_zero(format, b));
    const bool less = !equal && order_key(format, a) < order_key(format, b);
    switch (op) {
        case CompareOp::Eq:
            return !unordered && equal;
        case CompareOp::Ne:
            return !unordered && !equal;
        case CompareOp::Lt:
            return !unordered && less;
        case CompareOp::Le:
            return !unordered && (less || equal);
        case CompareOp::Gt:
            return !unordered && !less && !equal;
        case CompareOp::Ge:
            return !unordered && !less;
        case CompareOp::Equ:
            return unordered || equal;
        case CompareOp::Neu:
            return unordered || !equal;
        case CompareOp::Ltu:
            return unordered || less;
        case CompareOp::Leu:
            return unordered || less || equal;
        case CompareOp::Gtu:
            return unordered || (!less && !equal);
        case CompareOp::Geu:
            return unordered || !less;
        case CompareOp::Num:
            return !unordered;
        case CompareOp::Nan:
            return unordered;
    }
    return false;
}

}  // namespace gradguard::conformance
