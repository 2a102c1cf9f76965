// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/model.h"

#include <algorithm>

namespace gradguard::conformance {

std::optional<PtxType> parse_type(std::string_view text) {
    using Kind = PtxType::Kind;
    static const std::pair<std::string_view, PtxType> kTypes[] = {
        {"pred", {Kind::Predicate, 1, Format::F32}},     {"b8", {Kind::Untyped, 8, Format::F32}},
        {"b16", {Kind::Untyped, 16, Format::F32}},       {"b32", {Kind::Untyped, 32, Format::F32}},
        {"b64", {Kind::Untyped, 64, Format::F32}},       {"u8", {Kind::Unsigned, 8, Format::F32}},
        {"u16", {Kind::Unsigned, 16, Format::F32}},      {"u32", {Kind::Unsigned, 32, Format::F32}},
        {"u64", {Kind::Unsigned, 64, Format::F32}},      {"s8", {Kind::Signed, 8, Format::F32}},
        {"s16", {Kind::Signed, 16, Format::F32}},        {"s32", {Kind::Signed, 32, Format::F32}},
        {"s64", {Kind::Signed, 64, Format::F32}},        {"f16", {Kind::Float, 16, Format::F16}},
        {"bf16", {Kind::Float, 16, Format::BF16}},       {"f32", {Kind::Float, 32, Format::F32}},
        {"f64", {Kind::Float, 64, Format::F64}},         {"f16x2", {Kind::FloatPair, 32, Format::F16}},
        {"bf16x2", {Kind::FloatPair, 32, Format::BF16}}, {"u16x2", {Kind::IntPair, 32, Format::F32}},
        {"s16x2", {Kind::IntPair, 32, Format::F32}},
    };
    for (const auto& [name, type] : kTypes) {
        if (name == text) return type;
    }
    return std::nullopt;
}

OperandKind operand_of(const PtxType& type) {
    switch (type.kind) {
        case PtxType::Kind::Predicate:
            return predicate_operand();
        case PtxType::Kind::Float:
            return float_operand(type.format);
        case PtxType::Kind::FloatPair:
            return pair_operand(type.format);
        case PtxType::Kind::IntPair: {
            OperandKind kind = int_operand(16, true);
            kind.kind = OperandKind::Kind::IntPair;
            return kind;
        }
        case PtxType::Kind::Untyped:
        case PtxType::Kind::Unsigned:
        case PtxType::Kind::Signed:
            break;
    }
    return int_operand(type.bits, type.kind == PtxType::Kind::Signed);
}

NameParts::NameParts(std::string_view name) {
    std::vector<std::string> words(1);
    for (const char c : name) {
        if (c == '.') {
            words.emplace_back();
        } else {
            words.back() += c;
        }
    }
    opcode_ = words.front();
    parts_.assign(words.begin() + 1, words.end());
}

bool NameParts::take(std::string_view modifier) { return take_one({modifier}) == 0; }

int NameParts::take_one(std::initializer_list<std::string_view> names) {
    for (auto part = parts_.begin(); part != parts_.end(); ++part) {
        const auto* const found = std::find(names.begin(), names.end(), *part);
        if (found == names.end()) continue;
        parts_.erase(part);
        return static_cast<int>(found - names.begin());
    }
    return -1;
}

std::optional<PtxType> NameParts::take_type() {
    if (parts_.empty()) return std::nullopt;
    const auto type = parse_type(parts_.back());
    if (type) parts_.pop_back();
    return type;
}

InstructionModel lane_model(const std::vector<PtxType>& sources, const PtxType& result, LaneModel lane) {
    InstructionModel model;
    for (const PtxType& type : sources) {
        SourceOperand source;
        source.kind = operand_of(type);
        source.register_bits = type.kind == PtxType::Kind::Predicate ? 1 : std::max(type.bits, 16);
        // There are no literals of 16-bit floats and of predicates.
        const bool is_half =
            type.kind == PtxType::Kind::FloatPair || (type.kind == PtxType::Kind::Float && type.bits == 16);
        source.may_be_literal = type.kind != PtxType::Kind::Predicate && !is_half;
        model.sources.push_back(source);
    }
    ResultOperand operand;
    operand.type = result;
    operand.register_bits = result.kind == PtxType::Kind::Predicate ? 1 : std::max(result.bits, 16);
    model.results.push_back(operand);
    model.lane = std::move(lane);
    return model;
}

bool matches(const ResultOperand& result, Bits got, Bits want) {
    if (got == want) return true;
    if (result.ulps > 0 && !is_nan(Format::F32, want) && !is_nan(Format::F32, got)) {
        if ((got ^ want) >> 31 != 0) return false;
        return (got > want ? got - want : want - got) <= static_cast<Bits>(result.ulps);
    }
    if (result.equality == Equality::Exact) return false;
    const Format format = result.type.format;
    const bool is_pair = result.type.kind == PtxType::Kind::FloatPair;
    for (int half = 0; half < (is_pair ? 2 : 1); ++half) {
        const Bits x = is_pair ? (got >> (16 * half)) & 0xffff : got;
        const Bits y = is_pair ? (want >> (16 * half)) & 0xffff : want;
        const bool same = x == y || (is_nan(format, x) && is_nan(format, y)) ||
                          (result.equality == Equality::AnyZeroSign && is_zero(format, x) && is_zero(format, y));
        if (!same) return false;
    }
    // Beyond the format's bits nothing may be set.
    return (got & ~ones(result.type.bits)) == (want & ~ones(result.type.bits));
}

std::optional<InstructionModel> find_model(std::string_view name, const ModelOptions& options) {
    const NameParts parts(name);
    std::optional<InstructionModel> model;
    const auto attempt = [&](auto&& part) {
        if (!model) model = part();
    };
    attempt([&] { return float_model(parts, options); });
    attempt([&] { return compare_model(parts, options); });
    attempt([&] { return convert_model(parts, options); });
    attempt([&] { return rare_convert_model(parts); });
    attempt([&] { return approximate_model(parts, options); });
    attempt([&] { return bounded_model(parts, options); });
    attempt([&] { return int_model(parts); });
    attempt([&] { return carry_model(name); });
    attempt([&] { return bits_model(parts); });
    attempt([&] { return move_model(parts); });
    attempt([&] { return warp_model(parts); });
    attempt([&] { return memory_model(name); });
    attempt([&] { return atomic_model(name); });
    attempt([&] { return effect_model(name); });
    if (model) model->name = name;
    if (model && model->written.empty()) model->written = name;
    return model;
}

}  // namespace gradguard::conformance
