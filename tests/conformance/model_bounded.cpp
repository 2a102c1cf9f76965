// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Floating Point Instructions: sin, cos, tanh, rcp.approx.ftz.f64, rsqrt.approx.ftz.f64, rsqrt" and "Half
// Precision Floating Point Instructions: tanh, ex2": approximate instructions with a bound of their own. A result will
// do when it lies inside; where the manual has a table of results, those are exact. The .f64 forms have no bound in the
// manual: one of the two numbers of the result's precision beside the exact value is held here.
#include <cmath>
#include <cstring>

#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

/// The value of a pattern, in more precision than any of these formats has.
long double value_of_bits(Format format, Bits bits) {
    const Bits magnitude = bits & magnitude_mask(format);
    const long double sign = is_negative(format, bits) ? -1.0L : 1.0L;
    if (is_nan(format, bits)) return std::nanl("");
    if (is_infinite(format, bits)) return sign * HUGE_VALL;
    const auto field = static_cast<int>(magnitude >> fraction_bits(format));
    const Bits fraction = magnitude & (least_normal(format) - 1);
    const auto significand = static_cast<long double>(field == 0 ? fraction : fraction | least_normal(format));
    return sign * std::ldexp(significand,
                             (field == 0 ? least_exponent(format) : field - bias(format)) - fraction_bits(format));
}

/// Absolute error that is allowed of f(x) = exact.
using Bound = long double (*)(Format format, long double x, long double exact);
using Function = long double (*)(long double x);

const long double kPi = acosl(-1.0L);

long double circular_bound(Format, long double x, long double) {
    // Beyond 100 pi nothing is promised: any sine is one.
    return std::fabs(x) <= 2 * kPi ? exp2l(-20.5L) : std::fabs(x) <= 100 * kPi ? exp2l(-14.7L) : 2.0L;
}
long double tangent_bound(Format format, long double, long double exact) {
    if (format == Format::F32) return std::fabs(exact) * exp2l(-11);
    return exp2l(format == Format::F16 ? -10.987L : -8.0L);
}
long double power_bound(Format format, long double, long double exact) {
    return exact * exp2l(format == Format::F16 ? -9.9L : -7.0L);
}

struct Bounded {
    const char* opcode;
    Function function;
    Bound bound;
};
constexpr Bounded kFunctions[] = {{"sin", sinl, circular_bound},
                                  {"cos", cosl, circular_bound},
                                  {"tanh", tanhl, tangent_bound},
                                  {"ex2", exp2l, power_bound}};

/// Nearest number of the format, by the exact conversion from what is nearly exact.
Bits nearest(Format format, long double value) {
    const auto narrow = static_cast<double>(value);
    Bits bits = 0;
    std::memcpy(&bits, &narrow, sizeof(narrow));
    return float_to_float(Format::F64, format, bits, {});
}

/// Whether `got` will do for f of one element.
bool element_will_do(const Bounded& f, Format format, bool ftz, Bits a, Bits got) {
    if (ftz) a = flushed(format, a);
    const long double x = value_of_bits(format, a), exact = f.function(x);
    if (std::isnan(exact)) return is_nan(format, got);
    if (is_nan(format, got) || (ftz && is_subnormal(format, got))) return false;
    Bits best = nearest(format, exact);
    if (ftz) best = flushed(format, best);
    if (got == best) return true;
    // The tables: zeros, infinities; tanh passes subnormals of .f32 through.
    const bool is_given =
        x == 0 || std::isinf(x) || (f.bound == tangent_bound && format == Format::F32 && is_subnormal(format, a));
    if (is_given) return false;
    return std::fabs(value_of_bits(format, got) - exact) <= f.bound(format, x, exact);
}

std::optional<InstructionModel> function_model(NameParts parts, const PtxType& type, bool ftz) {
    const Bounded* f = nullptr;
    for (const Bounded& each : kFunctions) f = parts.opcode() == each.opcode ? &each : f;
    const bool is_half = type.bits == 16 || type.kind == PtxType::Kind::FloatPair;
    if (!f || type.format == Format::F64 || !parts.empty()) return std::nullopt;
    if ((f->bound == circular_bound && is_half) || (f->bound == power_bound && !is_half)) return std::nullopt;
    if (f->bound == tangent_bound && ftz) return std::nullopt;
    if (f->bound == power_bound && ftz != (type.format == Format::BF16)) return std::nullopt;
    const bool is_pair = type.kind == PtxType::Kind::FloatPair;
    InstructionModel model = lane_model({type}, type, [=, format = type.format](const Bits* in, Bits* out) {
        out[0] = 0;
        for (int half = is_pair ? 1 : 0; half >= 0; --half) {
            Bits a = is_pair ? (in[0] >> (16 * half)) & 0xffff : in[0];
            if (ftz) a = flushed(format, a);
            out[0] |= nearest(format, f->function(value_of_bits(format, a))) << (16 * half);
        }
        return true;
    });
    model.within = [=, format = type.format](const Bits* in, Bits got) {
        if (!is_pair) return element_will_do(*f, format, ftz, in[0], got);
        return element_will_do(*f, format, ftz, in[0] & 0xffff, got & 0xffff) &&
               element_will_do(*f, format, ftz, in[0] >> 16, got >> 16);
    };
    return model;
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: of the upper word, to an upper word.
bool upper_word_will_do(bool root, Bits in, Bits got) {
    const Bits upper = ~ones(32);
    Bits a = in & upper;
    if (is_subnormal(Format::F64, a)) a &= sign_mask(Format::F64);
    const long double x = value_of_bits(Format::F64, a);
    const long double exact = root ? (x == 0 ? 1 / x : 1 / sqrtl(x)) : 1 / x;
    if (std::isnan(exact)) return got == Bits{0x7fffffff} << 32;
    if ((got & ones(32)) != 0 || is_nan(Format::F64, got) || is_subnormal(Format::F64, got)) return false;
    if (std::fabs(exact) < 0x1p-1022L) return got == (std::signbit(exact) ? sign_mask(Format::F64) : 0);
    if (std::isinf(exact)) return value_of_bits(Format::F64, got) == exact;
    const long double unit = std::ldexp(1.0L, std::ilogb(exact) - 20);
    return std::fabs(value_of_bits(Format::F64, got) - exact) < unit &&
           std::signbit(exact) == is_negative(Format::F64, got);
}

bool reciprocal_root_will_do(Bits a, Bits got) {
    const long double x = value_of_bits(Format::F64, a), exact = x == 0 ? 1 / x : 1 / sqrtl(x);
    if (std::isnan(exact)) return is_nan(Format::F64, got);
    if (std::isinf(exact) || exact == 0) return value_of_bits(Format::F64, got) == exact;
    return std::fabs(value_of_bits(Format::F64, got) - exact) < std::ldexp(1.0L, std::ilogb(exact) - 52);
}

}  // namespace

std::optional<InstructionModel> bounded_model(NameParts parts, const ModelOptions& options) {
    const auto type = parts.take_type();
    const bool approximate = parts.take("approx");
    const bool may_flush = parts.opcode() == "sin" || parts.opcode() == "cos";
    const bool ftz = parts.take("ftz") || (options.flush_all && may_flush);
    const bool is_float = type && (type->kind == PtxType::Kind::Float || type->kind == PtxType::Kind::FloatPair);
    if (!is_float || !approximate || !parts.empty()) return std::nullopt;
    if (type->format != Format::F64) return function_model(std::move(parts), *type, ftz);
    const bool root = parts.opcode() == "rsqrt";
    if ((!root && parts.opcode() != "rcp") || (!root && !ftz)) return std::nullopt;
    InstructionModel model = lane_model({*type}, *type, [root](const Bits* in, Bits* out) {
        const long double x = value_of_bits(Format::F64, in[0]);
        out[0] = nearest(Format::F64, root ? 1 / sqrtl(x) : 1 / x);
        return true;
    });
    model.within = [root, ftz](const Bits* in, Bits got) {
        return ftz ? upper_word_will_do(root, in[0], got) : reciprocal_root_will_do(in[0], got);
    };
    return model;
}

}  // namespace gradguard::conformance
