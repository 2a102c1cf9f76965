// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Data Movement and Conversion Instructions: ld, st" and "atom, red".
#include <algorithm>

#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

/// Cache operators, eviction priorities and memory orders: hints to one thread that runs alone.
bool take_hints(NameParts& parts) {
    while (parts.take_one({"weak",
                           "volatile",
                           "relaxed",
                           "acquire",
                           "release",
                           "acq_rel",
                           "cta",
                           "gpu",
                           "sys",
                           "ca",
                           "cg",
                           "cs",
                           "lu",
                           "cv",
                           "wb",
                           "wt",
                           "nc",
                           "L1::no_allocate",
                           "L1::evict_first",
                           "L1::evict_last",
                           "L1::evict_normal",
                           "L1::evict_unchanged",
                           "L2::64B",
                           "L2::128B",
                           "L2::256B"}) >= 0) {
    }
    return parts.empty();
}

std::string take_space(NameParts& parts) {
    for (const char* space : {"global", "shared", "const", "param", "local"}) {
        if (parts.take(space)) return space;
    }
    return {};
}

/// Sizes of the registers for an element.
int register_bits(const PtxType& type) { return std::max(type.bits, 16); }

SourceOperand source_of(const PtxType& type) {
    SourceOperand source;
    source.kind = operand_of(type);
    source.register_bits = register_bits(type);
    source.may_be_wider = type.kind != PtxType::Kind::Float && type.bits < 64;
    return source;
}

ResultOperand result_of(const PtxType& type) {
    ResultOperand result;
    result.type = type;
    result.register_bits = register_bits(type);
    result.may_be_wider = type.kind != PtxType::Kind::Float && type.bits < 64;
    return result;
}

Bits float_add(Format format, Bits a, Bits b, bool ftz) { return add(format, a, b, {.ftz = ftz}); }

LaneModel atomic_lane(const PtxType& type, int op, bool flush) {
    return [type, op, flush](const Bits* in, Bits* out) {
        const Bits memory = in[0];
        if (type.kind == PtxType::Kind::Float) {
            out[0] = float_add(type.format, memory, in[1], flush);
        } else if (type.kind == PtxType::Kind::FloatPair) {
            out[0] = float_add(type.format, memory & 0xffff, in[1] & 0xffff, false) |
                     float_add(type.format, memory >> 16, in[1] >> 16, false) << 16;
        } else {
            out[0] = atomic(type.int_format(), static_cast<AtomicOp>(op), memory, in[1], in[2]);
        }
        out[1] = memory;
        return true;
    };
}

}  // namespace

namespace {

/// The table has rows by space and size, which types, vectors and hints are mapped to: "generic" is no word of PTX,
/// "any" stands for all that has no row of its own, "@32" for addresses in 32-bit registers.
std::string written_name(std::string name) {
    const auto replace = [&](std::string_view from, std::string_view to) {
        const std::size_t at = name.find(from);
        if (at != std::string::npos) name.replace(at, from.size(), to);
    };
    replace("@32", "");
    replace(".generic", "");
    replace(".any", ".v4.b32");
    return name;
}

}  // namespace

std::optional<InstructionModel> memory_model(std::string_view name) {
    const std::string written = written_name(std::string(name));
    NameParts parts(written);
    const bool is_load = parts.opcode() == "ld" || parts.opcode() == "ldu";
    const auto type = parts.take_type();
    if ((!is_load && parts.opcode() != "st") || !type || type->kind == PtxType::Kind::Predicate) return std::nullopt;
    InstructionModel model;
    model.shape = is_load ? Shape::Load : Shape::Store;
    model.written = written;
    model.has_32_bit_address = name.ends_with("@32");
    model.space = take_space(parts);
    const int vector = parts.take_one({"v2", "v4"});
    model.vector_elements = vector < 0 ? 1 : vector == 0 ? 2 : 4;
    if (!take_hints(parts) || type->bits * model.vector_elements > 128) return std::nullopt;
    if (is_load) {
        model.results.push_back(result_of(*type));
    } else {
        model.sources.push_back(source_of(*type));
        model.results.push_back(result_of(*type));
    }
    return model;
}

/// sources: memory, b and, for cas, c. results: memory afterwards and, for atom, memory before.
std::optional<InstructionModel> atomic_model(std::string_view name) {
    const std::string written = written_name(std::string(name));
    NameParts parts(written);
    const bool is_atom = parts.opcode() == "atom";
    const auto type = parts.take_type();
    if ((!is_atom && parts.opcode() != "red") || !type) return std::nullopt;
    const int op = parts.take_one({"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"});
    const bool is_float = type->kind == PtxType::Kind::Float || type->kind == PtxType::Kind::FloatPair;
    const bool no_ftz = parts.take("noftz");
    if (op < 0 || (is_float && op != static_cast<int>(AtomicOp::Add))) return std::nullopt;
    InstructionModel model;
    model.shape = Shape::Atomic;
    model.written = written;
    model.has_32_bit_address = name.ends_with("@32");
    model.space = take_space(parts);
    if (!take_hints(parts)) return std::nullopt;
    // "atom.add.f32 on global memory flushes subnormal inputs and results", on shared memory it does not.
    const bool flush =
        type->format == Format::F32 && is_float && type->bits == 32 && model.space != "shared" && !no_ftz;
    const std::size_t sources = op == static_cast<int>(AtomicOp::Cas) ? 3 : 2;
    model.sources.assign(sources, source_of(*type));
    for (SourceOperand& source : model.sources) source.may_be_wider = false;
    ResultOperand memory = result_of(*type);
    memory.may_be_wider = false;
    if (type->format == Format::F64) memory.equality = Equality::AnyNaN;
    model.results.push_back(memory);
    if (is_atom) {
        ResultOperand old = memory;
        old.equality = Equality::Exact;
        model.results.push_back(old);
    }
    model.relation = is_float ? Relation::Sum : Relation::Comparison;
    model.lane = atomic_lane(*type, op, flush);
    return model;
}

}  // namespace gradguard::conformance
