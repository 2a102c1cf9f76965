// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Floating Point Instructions", "Half Precision Floating Point Instructions", "Comparison and Selection
// Instructions".
#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

bool is_float(const PtxType& type) {
    return type.kind == PtxType::Kind::Float || type.kind == PtxType::Kind::FloatPair;
}

/// Applies a function of one element to each element of packed operands.
template <class F>
LaneModel elementwise(const PtxType& type, std::size_t operands, F&& element) {
    if (type.kind != PtxType::Kind::FloatPair) {
        return [element](const Bits* in, Bits* out) {
            out[0] = element(in);
            return true;
        };
    }
    return [element, operands](const Bits* in, Bits* out) {
        out[0] = 0;
        for (int half = 0; half < 2; ++half) {
            Bits parts[4] = {};
            for (std::size_t i = 0; i < operands; ++i) parts[i] = (in[i] >> (16 * half)) & 0xffff;
            out[0] |= element(parts) << (16 * half);
        }
        return true;
    };
}

std::optional<Rounding> take_rounding(NameParts& parts) {
    static constexpr Rounding kRoundings[] = {Rounding::NearestEven, Rounding::TowardZero, Rounding::Down,
                                              Rounding::Up};
    const int index = parts.take_one({"rn", "rz", "rm", "rp"});
    if (index < 0) return std::nullopt;
    return kRoundings[index];
}

struct Arithmetic {
    std::size_t operands;
    Relation relation;
    Bits (*apply)(Format, const Bits*, const Mode&);
};

std::optional<Arithmetic> arithmetic_of(const std::string& opcode) {
    if (opcode == "add") {
        return Arithmetic{2, Relation::Sum,
                          [](Format f, const Bits* x, const Mode& m) { return add(f, x[0], x[1], m); }};
    }
    if (opcode == "sub") {
        return Arithmetic{2, Relation::Sum,
                          [](Format f, const Bits* x, const Mode& m) { return sub(f, x[0], x[1], m); }};
    }
    if (opcode == "mul") {
        return Arithmetic{2, Relation::Product,
                          [](Format f, const Bits* x, const Mode& m) { return mul(f, x[0], x[1], m); }};
    }
    if (opcode == "fma" || opcode == "mad") {
        return Arithmetic{3, Relation::Fused,
                          [](Format f, const Bits* x, const Mode& m) { return fma(f, x[0], x[1], x[2], m); }};
    }
    if (opcode == "div") {
        return Arithmetic{2, Relation::Quotient,
                          [](Format f, const Bits* x, const Mode& m) { return div(f, x[0], x[1], m); }};
    }
    if (opcode == "rcp") {
        return Arithmetic{1, Relation::Independent,
                          [](Format f, const Bits* x, const Mode& m) { return rcp(f, x[0], m); }};
    }
    if (opcode == "sqrt") {
        return Arithmetic{1, Relation::Root, [](Format f, const Bits* x, const Mode& m) { return sqrt(f, x[0], m); }};
    }
    return std::nullopt;
}

std::optional<InstructionModel> arithmetic_model(NameParts parts, const ModelOptions& options) {
    const auto arithmetic = arithmetic_of(parts.opcode());
    const auto type = parts.take_type();
    if (!arithmetic || !type || !is_float(*type)) return std::nullopt;
    const auto rounding = take_rounding(parts);
    // add, sub and mul may go without: nearest even, and open to contraction where a product meets a sum.
    if (!rounding && arithmetic->relation != Relation::Sum && arithmetic->relation != Relation::Product)
        return std::nullopt;
    Mode mode;
    mode.rounding = rounding.value_or(Rounding::NearestEven);
    mode.ftz = parts.take("ftz") || (options.flush_all && type->format == Format::F32);
    mode.saturate = parts.take("sat");
    mode.relu = parts.take("relu");
    if (!parts.empty()) return std::nullopt;
    const auto apply = [f = type->format, arithmetic = *arithmetic, mode](const Bits* in) {
        return arithmetic.apply(f, in, mode);
    };
    InstructionModel model = lane_model(std::vector<PtxType>(arithmetic->operands, *type), *type,
                                        elementwise(*type, arithmetic->operands, apply));
    model.relation = arithmetic->relation;
    if (type->format == Format::F64) model.results[0].equality = Equality::AnyNaN;
    if (mode.saturate || mode.relu) model.results[0].equality = Equality::AnyZeroSign;
    return model;
}

std::optional<InstructionModel> min_max_model(NameParts parts, const ModelOptions& options) {
    const bool greater = parts.opcode() == "max";
    const auto type = parts.take_type();
    if ((!greater && parts.opcode() != "min") || !type || !is_float(*type)) return std::nullopt;
    MinMaxMode mode;
    mode.ftz = parts.take("ftz") || (options.flush_all && type->format == Format::F32);
    mode.nan = parts.take("NaN");
    if (parts.take("xorsign")) {
        mode.xorsign_abs = true;
        if (!parts.take("abs")) return std::nullopt;
    }
    if (!parts.empty()) return std::nullopt;
    const auto apply = [f = type->format, greater, mode](const Bits* in) {
        return greater ? max(f, in[0], in[1], mode) : min(f, in[0], in[1], mode);
    };
    InstructionModel model = lane_model({*type, *type}, *type, elementwise(*type, 2, apply));
    model.relation = Relation::Comparison;
    if (type->format == Format::F64) model.results[0].equality = Equality::AnyNaN;
    return model;
}

std::optional<InstructionModel> sign_model(NameParts parts, const ModelOptions& options) {
    const std::string& opcode = parts.opcode();
    const auto type = parts.take_type();
    if (!type || !is_float(*type)) return std::nullopt;
    const Format f = type->format;
    if (opcode == "copysign" && parts.empty()) {
        return lane_model({*type, *type}, *type,
                          elementwise(*type, 2, [f](const Bits* in) { return copysign(f, in[0], in[1]); }));
    }
    if (opcode != "abs" && opcode != "neg") return std::nullopt;
    const bool ftz = parts.take("ftz") || (options.flush_all && f == Format::F32);
    if (!parts.empty()) return std::nullopt;
    const bool is_abs = opcode == "abs";
    InstructionModel model = lane_model({*type}, *type, elementwise(*type, 1, [f, ftz, is_abs](const Bits* in) {
                                            return is_abs ? abs(f, in[0], ftz) : neg(f, in[0], ftz);
                                        }));
    model.results[0].equality = Equality::AnyNaN;
    return model;
}

std::optional<InstructionModel> testp_model(NameParts parts) {
    if (parts.opcode() != "testp") return std::nullopt;
    const auto type = parts.take_type();
    const int op = parts.take_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    if (!type || op < 0 || !parts.empty()) return std::nullopt;
    return lane_model({*type}, *parse_type("pred"), [f = type->format, op](const Bits* in, Bits* out) {
        out[0] = testp(f, static_cast<TestOp>(op), in[0]) ? 1 : 0;
        return true;
    });
}

/// One comparison of two patterns, whatever the type.
using Comparison = std::function<bool(Bits, Bits)>;

std::optional<Comparison> take_comparison(NameParts& parts, const PtxType& type, bool ftz) {
    const int op = parts.take_one({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
                                   "nan", "lo", "ls", "hi", "hs"});
    if (op < 0) return std::nullopt;
    if (is_float(type)) {
        if (op > 13) return std::nullopt;
        return [f = type.format, op, ftz](Bits a, Bits b) { return compare(f, static_cast<CompareOp>(op), a, b, ftz); };
    }
    // lo, ls, hi, hs: lt, le, gt, ge of unsigned integers. Untyped bits are only equal or not.
    if ((op > 5 && op < 14) || (op >= 14 && type.kind != PtxType::Kind::Unsigned)) return std::nullopt;
    if (type.kind == PtxType::Kind::Untyped && op > 1) return std::nullopt;
    const auto int_op = static_cast<IntCompareOp>(op >= 14 ? op - 12 : op);
    return [format = type.int_format(), int_op](Bits a, Bits b) { return int_compare(format, int_op, a, b); };
}

/// setp: one or two predicates, optionally combined with a third; the pair form takes "p|q".
std::optional<InstructionModel> setp_model(NameParts parts, const ModelOptions& options) {
    if (parts.opcode() != "setp") return std::nullopt;
    const auto type = parts.take_type();
    if (!type || type->kind == PtxType::Kind::Predicate) return std::nullopt;
    const bool ftz = parts.take("ftz") || (options.flush_all && type->format == Format::F32);
    const auto comparison = take_comparison(parts, *type, ftz);
    const int bool_op = parts.take_one({"and", "or", "xor"});
    if (!comparison || !parts.empty()) return std::nullopt;
    const PtxType predicate = *parse_type("pred");
    if (type->kind == PtxType::Kind::FloatPair) {
        // Two results: one for each half. The third operand combines with both.
        std::vector<PtxType> sources(2, *type);
        if (bool_op >= 0) sources.push_back(predicate);
        InstructionModel model =
            lane_model(sources, predicate, [comparison = *comparison, bool_op](const Bits* in, Bits* out) {
                for (int half = 0; half < 2; ++half) {
                    const bool holds = comparison((in[0] >> (16 * half)) & 0xffff, (in[1] >> (16 * half)) & 0xffff);
                    out[half] =
                        (bool_op < 0 ? holds : combine(static_cast<BoolOp>(bool_op), holds, in[2] != 0)) ? 1 : 0;
                }
                return true;
            });
        model.results.push_back(model.results[0]);
        model.relation = Relation::Comparison;
        model.pattern = bool_op < 0 ? "$0|$1, $2, $3" : "$0|$1, $2, $3, $4";
        return model;
    }
    std::vector<PtxType> sources(2, *type);
    if (bool_op >= 0) sources.push_back(predicate);
    InstructionModel model =
        lane_model(sources, predicate, [comparison = *comparison, bool_op](const Bits* in, Bits* out) {
            const bool holds = comparison(in[0], in[1]);
            out[0] = (bool_op < 0 ? holds : combine(static_cast<BoolOp>(bool_op), holds, in[2] != 0)) ? 1 : 0;
            out[1] = (bool_op < 0 ? !holds : combine(static_cast<BoolOp>(bool_op), !holds, in[2] != 0)) ? 1 : 0;
            return true;
        });
    model.relation = Relation::Comparison;
    model.last_source_may_be_negated = bool_op >= 0;
    if (type->bits == 16 && is_float(*type)) return model;  // No "p|q" for halves.
    model.results.push_back(model.results[0]);
    model.second_result_is_optional = true;
    model.pattern = bool_op < 0 ? "$0|$1, $2, $3" : "$0|$1, $2, $3, $4";
    return model;
}

/// set: all ones or 1.0 where the comparison holds.
std::optional<InstructionModel> set_model(NameParts parts, const ModelOptions& options) {
    if (parts.opcode() != "set") return std::nullopt;
    const auto source = parts.take_type();
    const auto result = parts.take_type();
    if (!source || !result) return std::nullopt;
    const bool ftz = parts.take("ftz") || (options.flush_all && source->format == Format::F32);
    const auto comparison = take_comparison(parts, *source, ftz);
    const int bool_op = parts.take_one({"and", "or", "xor"});
    if (!comparison || !parts.empty()) return std::nullopt;
    std::vector<PtxType> sources(2, *source);
    if (bool_op >= 0) sources.push_back(*parse_type("pred"));
    if (source->kind == PtxType::Kind::FloatPair) {
        // Each half by itself: all ones of its 16 bits, or its format's one.
        const Bits yes = result->kind == PtxType::Kind::FloatPair ? one(result->format) : 0xffff;
        InstructionModel model =
            lane_model(sources, *result, [comparison = *comparison, bool_op, yes](const Bits* in, Bits* out) {
                out[0] = 0;
                for (int half = 0; half < 2; ++half) {
                    const bool holds = comparison((in[0] >> (16 * half)) & 0xffff, (in[1] >> (16 * half)) & 0xffff);
                    const bool set = bool_op < 0 ? holds : combine(static_cast<BoolOp>(bool_op), holds, in[2] != 0);
                    out[0] |= (set ? yes : 0) << (16 * half);
                }
                return true;
            });
        model.relation = Relation::Comparison;
        return model;
    }
    const Bits yes = result->kind == PtxType::Kind::Float ? one(result->format) : ones(result->bits);
    InstructionModel model =
        lane_model(sources, *result, [comparison = *comparison, bool_op, yes](const Bits* in, Bits* out) {
            const bool holds = comparison(in[0], in[1]);
            out[0] = (bool_op < 0 ? holds : combine(static_cast<BoolOp>(bool_op), holds, in[2] != 0)) ? yes : 0;
            return true;
        });
    model.relation = Relation::Comparison;
    return model;
}

/// slct: a where c >= 0 (-0 included, NaN not), else b.
std::optional<InstructionModel> slct_model(NameParts parts, const ModelOptions& options) {
    if (parts.opcode() != "slct") return std::nullopt;
    const auto chooser = parts.take_type();
    const auto type = parts.take_type();
    const bool ftz = parts.take("ftz") || options.flush_all;
    if (!chooser || !type || !parts.empty()) return std::nullopt;
    return lane_model({*type, *type, *chooser}, *type, [chooser = *chooser, ftz](const Bits* in, Bits* out) {
        const bool first = chooser.kind == PtxType::Kind::Float ? compare(Format::F32, CompareOp::Ge, in[2], 0, ftz)
                                                                : value_of({32, true}, in[2]) >= 0;
        out[0] = first ? in[0] : in[1];
        return true;
    });
}

}  // namespace

std::optional<InstructionModel> float_model(NameParts parts, const ModelOptions& options) {
    if (auto model = arithmetic_model(parts, options)) return model;
    if (auto model = min_max_model(parts, options)) return model;
    return sign_model(parts, options);
}

std::optional<InstructionModel> compare_model(NameParts parts, const ModelOptions& options) {
    if (auto model = testp_model(parts)) return model;
    if (auto model = setp_model(parts, options)) return model;
    if (auto model = set_model(parts, options)) return model;
    return slct_model(parts, options);
}

}  // namespace gradguard::conformance
