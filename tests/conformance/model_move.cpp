// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Data Movement and Conversion Instructions: mov" and "Comparison and Selection Instructions: selp".
#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

/// mov between a register and a vector of `parts` registers that make it up, lowest first.
InstructionModel vector_move(const PtxType& whole, int parts, bool pack) {
    PtxType piece = whole;
    piece.bits = whole.bits / parts;
    const int bits = piece.bits;
    std::string list = "{";
    for (int k = 0; k < parts; ++k) list += (k == 0 ? "$" : ", $") + std::to_string(pack ? k + 1 : k);
    list += "}";
    InstructionModel model;
    if (pack) {
        model = lane_model(std::vector<PtxType>(static_cast<std::size_t>(parts), piece), whole,
                           [bits, parts](const Bits* in, Bits* out) {
                               out[0] = 0;
                               for (int k = 0; k < parts; ++k) out[0] |= (in[k] & ones(bits)) << (k * bits);
                               return true;
                           });
        for (SourceOperand& source : model.sources) source.may_be_literal = false;
        model.pattern = "$0, " + list;
    } else {
        model = lane_model({whole}, piece, [bits, parts](const Bits* in, Bits* out) {
            for (int k = 0; k < parts; ++k) out[k] = (in[0] >> (k * bits)) & ones(bits);
            return true;
        });
        model.sources[0].may_be_literal = false;
        model.results.resize(static_cast<std::size_t>(parts), model.results[0]);
        model.pattern = list + ", $" + std::to_string(parts);
    }
    model.written = "mov.b" + std::to_string(whole.bits);
    return model;
}

}  // namespace

std::optional<InstructionModel> move_model(NameParts parts) {
    const std::string opcode = parts.opcode();
    if (opcode == "mov" && parts.size() == 1) {
        for (const int whole : {32, 64}) {
            for (const int pieces : {2, 4}) {
                if (whole == 32 && pieces == 4) continue;
                const std::string count = std::to_string(pieces);
                const PtxType type{PtxType::Kind::Untyped, whole, Format::F32};
                const std::string prefix = "b" + std::to_string(whole);
                if (parts.front() == prefix + ":pack" + count) return vector_move(type, pieces, true);
                if (parts.front() == prefix + ":unpack" + count) return vector_move(type, pieces, false);
            }
        }
    }
    const auto type = parts.take_type();
    if (!type || !parts.empty()) return std::nullopt;
    if (opcode == "mov" && type->bits != 8 && (type->kind != PtxType::Kind::Float || type->bits > 16)) {
        return lane_model({*type}, *type, [](const Bits* in, Bits* out) {
            out[0] = in[0];
            return true;
        });
    }
    if (opcode == "selp") {
        return lane_model({*type, *type, *parse_type("pred")}, *type, [](const Bits* in, Bits* out) {
            out[0] = in[2] != 0 ? in[0] : in[1];
            return true;
        });
    }
    return std::nullopt;
}

}  // namespace gradguard::conformance
