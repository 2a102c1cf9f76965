// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/exact_warp.h"
#include "tests/conformance/operands.h"

/// From the name of an instruction ("add.rn.ftz.f32") to what it takes and what it must return.
namespace gradguard::conformance {

/// A type as it stands in an instruction's name.
struct PtxType {
    enum class Kind : std::uint8_t { Predicate, Untyped, Unsigned, Signed, Float, FloatPair, IntPair };
    Kind kind = Kind::Untyped;
    int bits = 32;  ///< Of the whole operand; 1 for predicates.
    Format format = Format::F32;

    bool operator==(const PtxType&) const = default;
    bool is_integer() const { return kind == Kind::Unsigned || kind == Kind::Signed; }
    IntFormat int_format() const { return {bits, kind == Kind::Signed}; }
};
std::optional<PtxType> parse_type(std::string_view text);
/// Operands of that type; untyped ones are generated as integers.
OperandKind operand_of(const PtxType& type);

/// Whether a result matches beyond equal bits.
enum class Equality : std::uint8_t {
    Exact,
    AnyNaN,       ///< The manual leaves NaN payloads open: any NaN stands for any other. `type` says of which format.
    AnyZeroSign,  ///< It also leaves open which zero clamping gives.
};

struct SourceOperand {
    OperandKind kind;
    int register_bits = 32;      ///< 1: predicate register.
    std::vector<Bits> literals;  ///< Not empty: must be a literal, one of these (lop3's table).
    bool may_be_literal = true;
    bool may_be_wider = false;  ///< cvt, ld, st: the register may be wider than the type.
};

struct ResultOperand {
    PtxType type;
    int register_bits = 32;
    Equality equality = Equality::Exact;
    int ulps = 0;               ///< Approximate instructions: as far from the nearest value a result may lie (FP32).
    bool may_be_wider = false;  ///< Then it is extended by the type's sign.
};

/// What a lane returns; nothing where the manual leaves it open.
using LaneModel = std::function<bool(const Bits* sources, Bits* results)>;
/// What lane `lane` returns when the lanes of `mask` execute together; sources[k] are all lanes' k-th operands.
using WarpModel = std::function<bool(const std::vector<Lanes>& sources, std::uint32_t mask, int lane, Bits* results)>;

/// How an instruction is driven.
enum class Shape : std::uint8_t {
    Lane,    ///< Each lane by itself: registers in, registers out.
    Warp,    ///< Lanes together.
    Load,    ///< Memory to registers.
    Store,   ///< Registers to memory.
    Atomic,  ///< Memory to registers and memory; results[0] is what memory holds afterwards.
    Effect,  ///< Nothing to compare bit by bit: barriers, fences, control flow. Has a program of its own.
};

struct InstructionModel {
    std::string name;
    std::string written;  ///< Opcode and modifiers as PTX has them.
    Shape shape = Shape::Lane;
    std::vector<SourceOperand> sources;
    std::vector<ResultOperand> results;
    Relation relation = Relation::Independent;
    Format narrow = Format::F32;
    LaneModel lane;
    WarpModel warp;
    /// Approximate instructions with a bound that is not a number of ulps: whether results[0] of these sources will do.
    std::function<bool(const Bits* sources, Bits got)> within;
    /// Operands, for what is not written "d, a, b": $0, $1... stand for results, then sources, $m for the member mask.
    std::string pattern;
    /// In place of one instruction: whole lines with the same placeholders.
    std::string body;
    bool second_result_is_optional = false;   ///< The pattern has "|$1", which may be left out.
    bool last_source_may_be_negated = false;  ///< A predicate that may be written "!p".
    std::string space;                        ///< Memory: global, shared, const, param or empty (generic).
    bool has_32_bit_address = false;          ///< Memory.
    int vector_elements = 1;                  ///< Load, Store.
};

/// The modifiers of a name, taken one by one; what is left over at the end is unknown.
class NameParts {
  public:
    explicit NameParts(std::string_view name);
    const std::string& opcode() const { return opcode_; }
    /// Removes `modifier` if it is there.
    bool take(std::string_view modifier);
    /// Removes the first modifier that is one of `names`; its index, or -1.
    int take_one(std::initializer_list<std::string_view> names);
    /// Removes the last modifier if it is a type.
    std::optional<PtxType> take_type();
    bool empty() const { return parts_.empty(); }
    std::size_t size() const { return parts_.size(); }
    const std::string& front() const { return parts_.front(); }

  private:
    std::string opcode_;
    std::vector<std::string> parts_;
};

/// `flush_all`: as if every FP32 instruction carried .ftz (MachineOptions::flush_subnormals).
struct ModelOptions {
    bool flush_all = false;
};

/// Nothing when there is no model for it: a test fails then.
std::optional<InstructionModel> find_model(std::string_view name, const ModelOptions& options = {});

// The parts of find_model(), by kind of instruction.
std::optional<InstructionModel> float_model(NameParts parts, const ModelOptions& options);
std::optional<InstructionModel> compare_model(NameParts parts, const ModelOptions& options);
std::optional<InstructionModel> convert_model(NameParts parts, const ModelOptions& options);
std::optional<InstructionModel> rare_convert_model(NameParts parts);
std::optional<InstructionModel> approximate_model(NameParts parts, const ModelOptions& options);
std::optional<InstructionModel> bounded_model(NameParts parts, const ModelOptions& options);
std::optional<InstructionModel> int_model(NameParts parts);
std::optional<InstructionModel> carry_model(std::string_view name);
std::optional<InstructionModel> bits_model(NameParts parts);
std::optional<InstructionModel> move_model(NameParts parts);
std::optional<InstructionModel> warp_model(NameParts parts);
std::optional<InstructionModel> memory_model(std::string_view name);
std::optional<InstructionModel> atomic_model(std::string_view name);
std::optional<InstructionModel> effect_model(std::string_view name);

/// A model of sources and one result of those types.
InstructionModel lane_model(const std::vector<PtxType>& sources, const PtxType& result, LaneModel lane);
/// Whether `got` will do where the model says `want`.
bool matches(const ResultOperand& result, Bits got, Bits want);

}  // namespace gradguard::conformance
