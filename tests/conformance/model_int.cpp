// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Integer Arithmetic Instructions", "Logic and Shift Instructions" and moves.
#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

using Binary = Bits (*)(IntFormat, Bits, Bits);

template <class F>
LaneModel always(F&& f) {
    return [f](const Bits* in, Bits* out) {
        out[0] = f(in);
        return true;
    };
}

PtxType untyped(int bits) { return {PtxType::Kind::Untyped, bits, Format::F32}; }
PtxType u32() { return {PtxType::Kind::Unsigned, 32, Format::F32}; }

PtxType widened(PtxType type) {
    type.bits *= 2;
    return type;
}

/// Operand `index` as a small number: an amount, a position or a length.
void make_small(InstructionModel& model, std::size_t index, std::uint32_t limit) {
    model.sources[index].kind = small_operand(limit);
}

std::optional<InstructionModel> product_model(NameParts parts, const PtxType& type) {
    const std::string& opcode = parts.opcode();
    const IntFormat f = type.int_format();
    const int part = parts.take_one({"lo", "hi", "wide"});
    const bool saturate = parts.take("sat");
    if (part < 0 || !parts.empty()) return std::nullopt;
    const Half half = static_cast<Half>(part);
    const PtxType result = half == Half::Full ? widened(type) : type;
    if (opcode == "mul") {
        return lane_model({type, type}, result,
                          always([=](const Bits* in) { return multiply(f, half, in[0], in[1]); }));
    }
    if (opcode == "mad") {
        if (saturate && (half != Half::Hi || f != IntFormat{32, true})) return std::nullopt;
        return lane_model({type, type, result}, result, always([=](const Bits* in) {
                              return saturate ? multiply_add_saturated(f, in[0], in[1], in[2])
                                              : multiply_add(f, half, in[0], in[1], in[2]);
                          }));
    }
    if (opcode == "mul24" && half != Half::Full) {
        return lane_model({type, type}, type,
                          always([=](const Bits* in) { return multiply24(f, half, in[0], in[1]); }));
    }
    if (opcode == "mad24" && half != Half::Full) {
        return lane_model({type, type, type}, type, always([=](const Bits* in) {
                              return (multiply24(f, half, in[0], in[1]) + in[2]) & ones(32);
                          }));
    }
    return std::nullopt;
}

std::optional<InstructionModel> two_operand_model(NameParts parts, const PtxType& type) {
    const std::string& opcode = parts.opcode();
    const IntFormat f = type.int_format();
    const bool saturate = parts.take("sat");
    if (!parts.empty()) return std::nullopt;
    const auto of = [&](Binary apply) {
        return lane_model({type, type}, type, always([=](const Bits* in) { return apply(f, in[0], in[1]); }));
    };
    if (opcode == "add" || opcode == "sub") {
        const bool is_add = opcode == "add";
        if (saturate) return of(is_add ? add_saturated : sub_saturated);
        return lane_model({type, type}, type, always([=](const Bits* in) {
                              return is_add ? add_with_carry(f, in[0], in[1], false).result
                                            : sub_with_borrow(f, in[0], in[1], false).result;
                          }));
    }
    if (saturate) return std::nullopt;
    if (opcode == "min" || opcode == "max") {
        InstructionModel model = of(opcode == "min" ? int_min : int_max);
        model.relation = Relation::Comparison;
        return model;
    }
    if (opcode == "div" || opcode == "rem") {
        const bool is_div = opcode == "div";
        return lane_model({type, type}, type, [=](const Bits* in, Bits* out) {
            const auto result = is_div ? divide(f, in[0], in[1]) : remainder(f, in[0], in[1]);
            out[0] = result.value_or(0);
            return result.has_value();
        });
    }
    return std::nullopt;
}

/// min, max and add of two integers of 16 bits in a word.
std::optional<InstructionModel> pair_of_ints_model(NameParts parts, bool is_signed) {
    const std::string opcode = parts.opcode();
    const bool relu = parts.take("relu");
    if (!parts.empty() || (opcode != "add" && opcode != "min" && opcode != "max")) return std::nullopt;
    if (relu && (opcode == "add" || !is_signed)) return std::nullopt;
    const PtxType type = *parse_type(is_signed ? "s16x2" : "u16x2");
    const IntFormat f{16, is_signed};
    return lane_model(
        {type, type}, type, always([=](const Bits* in) {
            Bits result = 0;
            for (int half = 0; half < 2; ++half) {
                const Bits a = (in[0] >> (16 * half)) & 0xffff, b = (in[1] >> (16 * half)) & 0xffff;
                Bits one = opcode == "add" ? (a + b) & 0xffff : opcode == "min" ? int_min(f, a, b) : int_max(f, a, b);
                if (relu && value_of(f, one) < 0) one = 0;
                result |= one << (16 * half);
            }
            return result;
        }));
}

std::optional<InstructionModel> relu_model(NameParts parts, const PtxType& type) {
    const std::string opcode = parts.opcode();
    const IntFormat f = type.int_format();
    if (!parts.empty() || f != IntFormat{32, true} || (opcode != "min" && opcode != "max")) return std::nullopt;
    return lane_model({type, type}, type, always([=](const Bits* in) {
                          const Bits result = opcode == "min" ? int_min(f, in[0], in[1]) : int_max(f, in[0], in[1]);
                          return value_of(f, result) < 0 ? 0 : result;
                      }));
}

std::optional<InstructionModel> other_int_model(NameParts parts, const PtxType& type) {
    const std::string& opcode = parts.opcode();
    const IntFormat f = type.int_format();
    if (!parts.empty()) return std::nullopt;
    if (opcode == "abs" && f.is_signed)
        return lane_model({type}, type, always([=](const Bits* in) { return int_abs(f, in[0]); }));
    if (opcode == "neg" && f.is_signed)
        return lane_model({type}, type, always([=](const Bits* in) { return int_neg(f, in[0]); }));
    if (opcode == "sad") {
        return lane_model({type, type, type}, type,
                          always([=](const Bits* in) { return sad(f, in[0], in[1], in[2]); }));
    }
    return std::nullopt;
}

std::optional<InstructionModel> dot_model(NameParts parts) {
    const std::string& opcode = parts.opcode();
    if (opcode != "dp4a" && opcode != "dp2a") return std::nullopt;
    const auto b = parts.take_type();
    const auto a = parts.take_type();
    const int half = parts.take_one({"lo", "hi"});
    if (!a || !b || !a->is_integer() || !b->is_integer() || !parts.empty()) return std::nullopt;
    const bool a_signed = a->int_format().is_signed;
    const bool b_signed = b->int_format().is_signed;
    const PtxType result = a_signed || b_signed ? *parse_type("s32") : u32();
    if (opcode == "dp4a" && half < 0) {
        return lane_model({*a, *b, result}, result,
                          always([=](const Bits* in) { return dp4a(a_signed, b_signed, in[0], in[1], in[2]); }));
    }
    if (opcode == "dp2a" && half >= 0) {
        return lane_model({*a, *b, result}, result, always([=](const Bits* in) {
                              return dp2a(a_signed, b_signed, half == 1, in[0], in[1], in[2]);
                          }));
    }
    return std::nullopt;
}

/// Bit-wise functions of one to three operands of one size, and of predicates.
std::optional<InstructionModel> logic_model(const NameParts& parts, const PtxType& type) {
    const std::string& opcode = parts.opcode();
    const int bits = type.bits;
    const int op = opcode == "and" ? 0 : opcode == "or" ? 1 : opcode == "xor" ? 2 : -1;
    if (op >= 0) {
        return lane_model({type, type}, type, always([=](const Bits* in) {
                              return op == 0 ? in[0] & in[1] : op == 1 ? in[0] | in[1] : in[0] ^ in[1];
                          }));
    }
    if (opcode == "not") return lane_model({type}, type, always([=](const Bits* in) { return ~in[0] & ones(bits); }));
    if (bits == 1) return std::nullopt;
    if (opcode == "cnot") return lane_model({type}, type, always([=](const Bits* in) { return cnot(bits, in[0]); }));
    if (opcode == "brev") return lane_model({type}, type, always([=](const Bits* in) { return brev(bits, in[0]); }));
    if (opcode == "popc") return lane_model({type}, u32(), always([=](const Bits* in) { return popc(bits, in[0]); }));
    if (opcode == "clz") return lane_model({type}, u32(), always([=](const Bits* in) { return clz(bits, in[0]); }));
    return std::nullopt;
}

std::optional<InstructionModel> lop3_model(NameParts parts) {
    if (parts.opcode() != "lop3" || !parts.take("b32") || !parts.empty()) return std::nullopt;
    const PtxType b32 = untyped(32);
    InstructionModel model =
        lane_model({b32, b32, b32, b32}, b32,
                   always([](const Bits* in) { return lop3(32, in[0], in[1], in[2], static_cast<unsigned>(in[3])); }));
    for (Bits table = 0; table < 256; ++table) model.sources[3].literals.push_back(table);
    return model;
}

std::optional<InstructionModel> shift_model(NameParts parts) {
    const std::string& opcode = parts.opcode();
    const bool funnels = opcode == "shf";
    const auto type = parts.take_type();
    if (!type || (opcode != "shl" && opcode != "shr" && !funnels)) return std::nullopt;
    if (funnels) {
        const int direction = parts.take_one({"l", "r"});
        const int mode = parts.take_one({"clamp", "wrap"});
        if (direction < 0 || mode < 0 || type->bits != 32 || !parts.empty()) return std::nullopt;
        InstructionModel model =
            lane_model({*type, *type, u32()}, *type, always([=](const Bits* in) {
                           return funnel(direction == 0, mode == 1, in[0], in[1], static_cast<std::uint32_t>(in[2]));
                       }));
        make_small(model, 2, 40);
        return model;
    }
    if (!parts.empty() || (opcode == "shl" && type->is_integer())) return std::nullopt;
    InstructionModel model =
        lane_model({*type, u32()}, *type, always([type = *type, left = opcode == "shl"](const Bits* in) {
                       const auto amount = static_cast<std::uint32_t>(in[1]);
                       return left ? shl(type.bits, in[0], amount) : shr(type.int_format(), in[0], amount);
                   }));
    make_small(model, 1, static_cast<std::uint32_t>(type->bits) + 8);
    return model;
}

std::optional<InstructionModel> field_model(NameParts parts) {
    const std::string& opcode = parts.opcode();
    const auto word = [](Bits bits) { return static_cast<std::uint32_t>(bits); };
    const int mode = parts.take_one({"wrap", "clamp"});
    const bool shift_amount = parts.take("shiftamt");
    const auto type = parts.take_type();
    if (!type || !parts.empty()) return std::nullopt;
    const IntFormat f = type->int_format();
    const auto limit = static_cast<std::uint32_t>(type->bits) + 8;
    InstructionModel model;
    if (opcode == "bfe" && type->is_integer()) {
        model = lane_model({*type, u32(), u32()}, *type,
                           always([=](const Bits* in) { return bfe(f, in[0], word(in[1]), word(in[2])); }));
    } else if (opcode == "bfi" && !type->is_integer()) {
        model = lane_model({*type, *type, u32(), u32()}, *type,
                           always([=](const Bits* in) { return bfi(f.bits, in[0], in[1], word(in[2]), word(in[3])); }));
        make_small(model, 3, limit);
    } else if (opcode == "bfind" && type->is_integer()) {
        return lane_model({*type}, u32(), always([=](const Bits* in) { return bfind(f, in[0], shift_amount); }));
    } else if (opcode == "bmsk" && mode >= 0) {
        model = lane_model({u32(), u32()}, *type,
                           always([=](const Bits* in) { return bmsk(mode == 1, word(in[0]), word(in[1])); }));
        make_small(model, 0, limit);
        make_small(model, 1, limit);
        return model;
    } else if (opcode == "szext" && mode >= 0) {
        model = lane_model({*type, u32()}, *type,
                           always([=](const Bits* in) { return szext(mode == 1, f.is_signed, in[0], word(in[1])); }));
        make_small(model, 1, limit);
        return model;
    } else if (opcode == "fns") {
        model = lane_model({*type, u32(), *parse_type("s32")}, *type, [=](const Bits* in, Bits* out) {
            out[0] = fns(word(in[0]), word(in[1]), static_cast<std::int32_t>(word(in[2])));
            return in[1] < 32;  // The manual says nothing of bases beyond.
        });
        make_small(model, 1, 32);
        make_small(model, 2, 33);
        return model;
    } else {
        return std::nullopt;
    }
    make_small(model, model.sources.size() - 2, limit);
    make_small(model, model.sources.size() - 1, limit);
    return model;
}

std::optional<InstructionModel> prmt_model(NameParts parts) {
    if (parts.opcode() != "prmt" || !parts.take("b32")) return std::nullopt;
    const int mode = parts.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    if (!parts.empty()) return std::nullopt;
    const PtxType b32 = untyped(32);
    InstructionModel model = lane_model({b32, b32, b32}, b32, always([=](const Bits* in) {
                                            return prmt(static_cast<PermuteMode>(mode + 1), in[0], in[1], in[2]);
                                        }));
    model.sources[2].kind.kind = OperandKind::Kind::Selector;
    return model;
}

}  // namespace

std::optional<InstructionModel> int_model(NameParts parts) {
    if (auto model = dot_model(parts)) return model;
    const bool is_signed_pair = parts.take("s16x2");
    if (is_signed_pair || parts.take("u16x2")) return pair_of_ints_model(parts, is_signed_pair);
    const auto type = parts.take_type();
    if (!type || !type->is_integer()) return std::nullopt;
    if (parts.take("relu")) return relu_model(parts, *type);
    if (auto model = product_model(parts, *type)) return model;
    if (auto model = two_operand_model(parts, *type)) return model;
    return other_int_model(parts, *type);
}

std::optional<InstructionModel> bits_model(NameParts parts) {
    if (auto model = shift_model(parts)) return model;
    if (auto model = field_model(parts)) return model;
    if (auto model = lop3_model(parts)) return model;
    if (auto model = prmt_model(parts)) return model;
    const auto type = parts.take_type();
    const bool fits = type && (type->kind == PtxType::Kind::Untyped || type->kind == PtxType::Kind::Predicate);
    if (!fits || !parts.empty()) return std::nullopt;
    return logic_model(parts, *type);
}

}  // namespace gradguard::conformance
