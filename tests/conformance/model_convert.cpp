// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Data Movement and Conversion Instructions: cvt".
#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

bool is_scalar_float(const PtxType& type) { return type.kind == PtxType::Kind::Float; }

bool holds_all_of(const PtxType& type, const PtxType& other) {
    return least(type.int_format()) <= least(other.int_format()) &&
           greatest(type.int_format()) >= greatest(other.int_format());
}

constexpr Rounding kRoundings[] = {Rounding::NearestEven, Rounding::TowardZero, Rounding::Down, Rounding::Up};

InstructionModel float_to_float_model(const PtxType& from, const PtxType& to, const Mode& mode, bool integral) {
    InstructionModel model =
        lane_model({from}, to, [f = from.format, t = to.format, mode, integral](const Bits* in, Bits* out) {
            out[0] = integral ? float_to_integral(f, in[0], mode) : float_to_float(f, t, in[0], mode);
            return true;
        });
    model.relation = from.bits > to.bits || integral ? Relation::Narrow : Relation::Independent;
    model.narrow = to.format;
    // 16-bit results are canonical (0x7fff); of wider ones the manual fixes no payload.
    model.results[0].equality = to.bits > 16 ? Equality::AnyNaN : Equality::Exact;
    if (mode.saturate || mode.relu) model.results[0].equality = Equality::AnyZeroSign;
    return model;
}

/// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
InstructionModel pair_model(const PtxType& to, const Mode& mode) {
    const PtxType f32 = *parse_type("f32");
    InstructionModel model = lane_model({f32, f32}, to, [t = to.format, mode](const Bits* in, Bits* out) {
        out[0] = float_to_float(Format::F32, t, in[0], mode) << 16 | float_to_float(Format::F32, t, in[1], mode);
        return true;
    });
    if (mode.relu) model.results[0].equality = Equality::AnyZeroSign;
    return model;
}

InstructionModel int_result_model(const PtxType& from, const PtxType& to, Rounding rounding, bool ftz) {
    InstructionModel model = lane_model({from}, to, [=](const Bits* in, Bits* out) {
        out[0] = float_to_int(from.format, to.int_format(), in[0], rounding, ftz);
        return true;
    });
    model.relation = Relation::Narrow;
    model.narrow = Format::F32;
    model.results[0].may_be_wider = from.format != Format::BF16;  // ptxas 13 refuses it for .bf16, both ways.
    return model;
}

InstructionModel int_source_model(const PtxType& from, const PtxType& to, const Mode& mode, bool saturate) {
    InstructionModel model = lane_model({from}, to, [=](const Bits* in, Bits* out) {
        out[0] = to.is_integer() ? int_to_int(from.int_format(), to.int_format(), in[0], saturate)
                                 : int_to_float(from.int_format(), to.format, in[0], mode);
        return true;
    });
    model.sources[0].may_be_wider = to.format != Format::BF16;
    if (is_scalar_float(to)) {
        model.relation = Relation::Narrow;
        model.narrow = to.format;
        if (mode.saturate) model.results[0].equality = Equality::AnyZeroSign;
    } else {
        model.results[0].may_be_wider = true;
    }
    return model;
}

}  // namespace

std::optional<InstructionModel> convert_model(NameParts parts, const ModelOptions& options) {
    if (parts.opcode() != "cvt") return std::nullopt;
    const auto from = parts.take_type();
    const auto to = parts.take_type();
    if (!from || !to) return std::nullopt;
    const int float_rounding = parts.take_one({"rn", "rz", "rm", "rp"});
    const int int_rounding = parts.take_one({"rni", "rzi", "rmi", "rpi"});
    Mode mode;
    // No pair has an .ftz form.
    const bool is_pair = to->kind == PtxType::Kind::FloatPair;
    mode.ftz = !is_pair && (parts.take("ftz") || options.flush_all);
    mode.saturate = parts.take("sat");
    mode.relu = parts.take("relu");
    mode.satfinite = parts.take("satfinite");
    if (mode.satfinite) mode.ftz = false;  // ptxas: ".satfinite cannot be combined with .ftz"
    if (!parts.empty()) return std::nullopt;
    if (int_rounding >= 0) mode.rounding = kRoundings[int_rounding];
    if (float_rounding >= 0) mode.rounding = kRoundings[float_rounding];
    if (is_pair) {
        if (from->format != Format::F32 || float_rounding < 0) return std::nullopt;
        return pair_model(*to, mode);
    }
    if (is_scalar_float(*from) && is_scalar_float(*to)) {
        const bool integral = int_rounding >= 0;
        const bool narrows = from->bits > to->bits || (from->bits == to->bits && from->format != to->format);
        if ((integral && from->format != to->format) || (narrows && float_rounding < 0)) return std::nullopt;
        return float_to_float_model(*from, *to, mode, integral);
    }
    if (is_scalar_float(*from) && to->is_integer()) {
        // Results are clamped anyway: "for float-to-integer conversions .sat is redundant".
        if (int_rounding < 0) return std::nullopt;
        return int_result_model(*from, *to, mode.rounding, mode.ftz);
    }
    if (from->is_integer() && (to->is_integer() || is_scalar_float(*to))) {
        // ".sat is allowed only where the destination's range is not a superset of the source's."
        if (to->is_integer() && mode.saturate && holds_all_of(*to, *from)) return std::nullopt;
        if (is_scalar_float(*to) && float_rounding < 0) return std::nullopt;
        return int_source_model(*from, *to, mode, mode.saturate);
    }
    return std::nullopt;
}

}  // namespace gradguard::conformance
