// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Parallel Synchronization and Communication Instructions": vote, match, redux, shfl, activemask.
#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

InstructionModel of_warp(const std::vector<PtxType>& sources, const std::vector<PtxType>& results, std::string pattern,
                         WarpModel warp) {
    InstructionModel model = lane_model(sources, results.front(), nullptr);
    for (std::size_t k = 1; k < results.size(); ++k) {
        ResultOperand result;
        result.type = results[k];
        result.register_bits = results[k].kind == PtxType::Kind::Predicate ? 1 : results[k].bits;
        model.results.push_back(result);
    }
    model.shape = Shape::Warp;
    model.pattern = std::move(pattern);
    model.warp = std::move(warp);
    return model;
}

std::optional<InstructionModel> vote_model(NameParts parts) {
    const PtxType pred = *parse_type("pred");
    const int op = parts.take_one({"all", "any", "uni", "ballot"});
    const auto type = parts.take_type();
    if (!parts.take("sync") || !parts.empty() || op < 0 || !type) return std::nullopt;
    if (op == 3) {
        if (type->bits != 32) return std::nullopt;
        return of_warp({pred}, {*type}, "$0, $1, $m", [](const auto& in, std::uint32_t mask, int, Bits* out) {
            out[0] = ballot(in[0], mask);
            return true;
        });
    }
    if (type->kind != PtxType::Kind::Predicate) return std::nullopt;
    return of_warp({pred}, {pred}, "$0, $1, $m", [op](const auto& in, std::uint32_t mask, int, Bits* out) {
        out[0] = vote(static_cast<VoteOp>(op), in[0], mask) ? 1 : 0;
        return true;
    });
}

std::optional<InstructionModel> match_model(NameParts parts) {
    const auto type = parts.take_type();
    const int op = parts.take_one({"any", "all"});
    if (!parts.take("sync") || !parts.empty() || op < 0 || !type || type->bits < 32) return std::nullopt;
    const PtxType mask_type = *parse_type("b32");
    if (op == 0) {
        return of_warp({*type}, {mask_type}, "$0, $1, $m", [](const auto& in, std::uint32_t mask, int lane, Bits* out) {
            out[0] = match_any(in[0], mask, lane);
            return true;
        });
    }
    InstructionModel model = of_warp({*type}, {mask_type, *parse_type("pred")}, "$0|$1, $2, $m",
                                     [](const auto& in, std::uint32_t mask, int, Bits* out) {
                                         out[0] = match_all(in[0], mask);
                                         out[1] = out[0] != 0 ? 1 : 0;
                                         return true;
                                     });
    model.second_result_is_optional = true;
    return model;
}

std::optional<InstructionModel> redux_model(NameParts parts) {
    const auto type = parts.take_type();
    const int op = parts.take_one({"add", "min", "max", "and", "or", "xor"});
    if (!parts.take("sync") || !parts.empty() || op < 0 || !type || type->bits != 32) return std::nullopt;
    if ((op < 3) != type->is_integer()) return std::nullopt;
    return of_warp({*type}, {*type}, "$0, $1, $m",
                   [op, is_signed = type->int_format().is_signed](const auto& in, std::uint32_t mask, int, Bits* out) {
                       out[0] = redux(static_cast<ReduxOp>(op), is_signed, in[0], mask);
                       return true;
                   });
}

std::optional<InstructionModel> shuffle_model(NameParts parts) {
    const auto type = parts.take_type();
    const int mode = parts.take_one({"up", "down", "bfly", "idx"});
    if (!parts.take("sync") || !parts.empty() || mode < 0 || !type || type->bits != 32) return std::nullopt;
    const PtxType u32 = *parse_type("u32");
    InstructionModel model = of_warp({*type, u32, u32}, {*type, *parse_type("pred")}, "$0|$1, $2, $3, $4, $m",
                                     [mode](const auto& in, std::uint32_t mask, int lane, Bits* out) {
                                         const Shuffled shuffled = shuffle(static_cast<ShuffleMode>(mode), in[0], mask,
                                                                           lane, in[1][lane], in[2][lane]);
                                         out[0] = shuffled.value.value_or(0);
                                         out[1] = shuffled.in_range ? 1 : 0;
                                         return shuffled.value.has_value();
                                     });
    model.second_result_is_optional = true;
    model.sources[1].kind = small_operand(32);
    model.sources[2].kind.kind = OperandKind::Kind::Selector;
    return model;
}

}  // namespace

std::optional<InstructionModel> warp_model(NameParts parts) {
    const std::string opcode = parts.opcode();
    if (opcode == "vote") return vote_model(std::move(parts));
    if (opcode == "match") return match_model(std::move(parts));
    if (opcode == "redux") return redux_model(std::move(parts));
    if (opcode == "shfl") return shuffle_model(std::move(parts));
    if (opcode == "activemask" && parts.take("b32") && parts.empty()) {
        return of_warp({}, {*parse_type("b32")}, "$0", [](const auto&, std::uint32_t mask, int, Bits* out) {
            out[0] = mask;
            return true;
        });
    }
    return std::nullopt;
}

}  // namespace gradguard::conformance
