// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Floating Point Instructions": rcp, sqrt, rsqrt, ex2, lg2 with .approx, div.approx and div.full. The manual
// bounds the error: relative 2^-23 (rcp, sqrt) to 2^-22 (rsqrt 2^-22.9, lg2), or 2 ulp (ex2, div). A result that is one
// of the two floats beside the exact value lies inside all of them; the nearest float and 1 ulp are what is held here.
#include <cmath>
#include <cstring>

#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

long double value_of_float(Bits bits) {
    const auto word = static_cast<std::uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
}

Bits nearest_float(long double value) {
    const auto nearest = static_cast<float>(value);
    std::uint32_t word;
    std::memcpy(&word, &nearest, sizeof(word));
    return std::isnan(value) ? 0x7fffffff : word;
}

Bits flushed_if(bool ftz, Bits bits) { return ftz && (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits; }

long double function(int opcode, long double a) {
    switch (opcode) {
        case 0:
            return 1 / a;
        case 1:
            return sqrtl(a);
        case 2:
            return 1 / sqrtl(a);
        case 3:
            return exp2l(a);
        default:
            return a == 0 ? -HUGE_VALL : log2l(a);
    }
}

}  // namespace

std::optional<InstructionModel> approximate_model(NameParts parts, const ModelOptions& options) {
    const auto type = parts.take_type();
    const bool full = parts.take("full");
    const bool approx = parts.take("approx");
    const bool ftz = parts.take("ftz") || options.flush_all;
    if (full == approx || !parts.empty() || !type || type->kind != PtxType::Kind::Float || type->format != Format::F32)
        return std::nullopt;
    InstructionModel model;
    if (parts.opcode() == "div") {
        model = lane_model({*type, *type}, *type, [=](const Bits* in, Bits* out) {
            const Bits a = flushed_if(ftz, in[0]);
            const Bits b = flushed_if(ftz, in[1]);
            const long double size = std::fabs(value_of_float(b));
            out[0] = flushed_if(ftz, nearest_float(value_of_float(a) / value_of_float(b)));
            return full || !(size > 0x1p126L) || std::isinf(size);  // beyond, div.approx is a matter of its own
        });
        model.relation = Relation::Quotient;
    } else {
        static constexpr const char* kOpcodes[] = {"rcp", "sqrt", "rsqrt", "ex2", "lg2"};
        int opcode = -1;
        for (int k = 0; k < 5; ++k) opcode = parts.opcode() == kOpcodes[k] ? k : opcode;
        if (opcode < 0 || full) return std::nullopt;
        model = lane_model({*type}, *type, [=](const Bits* in, Bits* out) {
            out[0] = flushed_if(ftz, nearest_float(function(opcode, value_of_float(flushed_if(ftz, in[0])))));
            return true;
        });
    }
    model.results[0].ulps = 1;
    model.results[0].equality = Equality::AnyNaN;
    return model;
}

}  // namespace gradguard::conformance
