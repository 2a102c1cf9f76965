// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Data Movement and Conversion Instructions: cvt" to .tf32, and "cvt.pack".
#include <algorithm>

#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

/// TF32 is FP32 without the last 13 bits of the fraction, so rounding is arithmetic on the pattern: adding carries into
/// the exponent, and from the greatest number into infinity.
std::optional<InstructionModel> tf32_model(NameParts parts, const PtxType& from) {
    const int rounding = parts.take_one({"rna", "rn", "rz"});
    const bool relu = parts.take("relu"), finite = parts.take("satfinite");
    if (rounding < 0 || !parts.empty() || from.kind != PtxType::Kind::Float || from.format != Format::F32)
        return std::nullopt;
    const PtxType result{PtxType::Kind::Untyped, 32, Format::F32};
    InstructionModel model = lane_model({from}, result, [=](const Bits* in, Bits* out) {
        const Bits a = in[0];
        if (is_nan(Format::F32, a)) {
            out[0] = canonical_nan(Format::F32);
            return true;
        }
        const Bits half = 0x1000, tie_to_even = (half - 1) + ((a >> 13) & 1);
        const Bits added = rounding == 0 ? half : rounding == 1 ? tie_to_even : 0;
        Bits rounded = (a + added) & ~ones(13) & ones(32);
        if (is_infinite(Format::F32, a)) rounded = a;
        if (finite && is_infinite(Format::F32, rounded)) rounded -= Bits{1} << 13;
        out[0] = relu && is_negative(Format::F32, a) ? 0 : rounded;
        return true;
    });
    model.relation = Relation::Narrow;
    model.narrow = Format::F16;  // its 11 bits are those of TF32
    model.results[0].equality = Equality::AnyNaN;
    return model;
}

/// d = c shifted up, a and b clamped below it.
std::optional<InstructionModel> pack_model(NameParts parts) {
    const bool filled = parts.take("b32");
    if (!parts.take("sat") || !parts.take("s32") || parts.size() != 1) return std::nullopt;
    const std::string type = parts.front();
    const int bits = type == "u16" || type == "s16" ? 16 : type.size() == 2 ? type[1] - '0' : 0;
    const bool is_signed = type[0] == 's';
    if ((bits == 16) == filled || (filled && bits != 2 && bits != 4 && bits != 8)) return std::nullopt;
    const PtxType s32 = *parse_type("s32"), b32 = *parse_type("b32");
    std::vector<PtxType> sources{s32, s32};
    if (filled) sources.push_back(b32);
    return lane_model(sources, b32, [=](const Bits* in, Bits* out) {
        const SignedWide least_value = is_signed ? -(SignedWide{1} << (bits - 1)) : 0;
        const SignedWide greatest_value = least_value + static_cast<SignedWide>(ones(bits));
        const auto part = [&](Bits operand) {
            const SignedWide value = value_of({32, true}, operand);
            return static_cast<Bits>(std::clamp(value, least_value, greatest_value)) & ones(bits);
        };
        const Bits low = part(in[0]) << bits | part(in[1]);
        out[0] = (filled ? in[2] << (2 * bits) | low : low) & ones(32);
        return true;
    });
}

}  // namespace

std::optional<InstructionModel> rare_convert_model(NameParts parts) {
    if (parts.opcode() != "cvt") return std::nullopt;
    if (parts.take("pack")) return pack_model(std::move(parts));
    const auto from = parts.take_type();
    if (!from || !parts.take("tf32")) return std::nullopt;
    return tf32_model(std::move(parts), *from);
}

}  // namespace gradguard::conformance
