// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/vgpu/finding.h"

/// A PTX module as it was written, names resolved. Nothing here knows how instructions behave.
namespace gradguard::vgpu::ast {

enum class TypeKind : std::uint8_t { Predicate, Bits, Unsigned, Signed, Float };

/// .pred, .b8 to .b64, .u8 to .u64, .s8 to .s64, .f16, .bf16, .f32, .f64.
struct Type {
    TypeKind kind = TypeKind::Bits;
    std::uint8_t bytes = 0;

    bool operator==(const Type&) const = default;
};

/// Nothing when `name` ("u32", without the dot) is no type of PTX that we know.
std::optional<Type> parse_type(std::string_view name);

struct Register {
    std::string name;
    Type type;
};

/// CUDA source, from `.loc`. file 0: none.
struct SourceLine {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    auto operator<=>(const SourceLine&) const = default;
};

enum class SpecialRegister : std::uint8_t {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    LaneId,
    WarpId,
    NwarpId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    // Identifiers and sizes of the launch.
    NsmId,
    GridId,
    DynamicSharedBytes,
    TotalSharedBytes,
    AllSharedBytes,
    ReservedShared,
    ClusterRank,
    ClusterBlocks,
    // Read anew by each instruction.
    SmId,
    Clock,
    ClockHigh,
    Clock64,
    GlobalTimer,
    GlobalTimerLow,
    GlobalTimerHigh,
};
/// `name` with its percent sign.
std::optional<SpecialRegister> parse_special_register(std::string_view name);

/// Where an initial value holds the address of a .global or .const variable: `name`, `name+4`, `generic(name)`.
struct AddressValue {
    std::uint64_t at_bytes = 0;  ///< In the variable; eight bytes.
    std::string name;
    std::int64_t offset = 0;
    std::uint32_t line = 0;
};

struct Variable {
    std::string name;
    Space space = Space::Global;
    std::uint32_t align_bytes = 1;
    std::uint64_t bytes = 0;
    std::uint32_t element_bytes = 1;      ///< Of its type.
    std::uint64_t offset_bytes = 0;       ///< In the block's shared memory or the argument block.
    bool is_extern = false;               ///< Of dynamic size (.extern .shared).
    std::vector<std::uint8_t> initial;    ///< Shorter than `bytes`: the rest is zero. Empty: not initialised.
    std::vector<AddressValue> addresses;  ///< Zeros in `initial` where the machine puts addresses.
    std::uint32_t line = 0;
};

struct Operand {
    enum class Kind : std::uint8_t {
        Register,  ///< `index` in Entry::registers
        Special,   ///< `special`
        Integer,   ///< `bits`, two's complement
        Float32,   ///< `bits`: 0f...
        Float64,   ///< `bits`: 0d... or a decimal literal
        Variable,  ///< `index` in Entry::variables, plus `offset`
        Label,     ///< `index` in Entry::labels
        Address,   ///< [elements[0] + offset]
        Vector,    ///< {elements...}
        Pair,      ///< elements[0] | elements[1]
        Sink,      ///< _
    };
    Kind kind = Kind::Sink;
    bool negated = false;  ///< !predicate
    SpecialRegister special = SpecialRegister::TidX;
    std::uint32_t index = 0;
    std::uint64_t bits = 0;
    std::int64_t offset = 0;
    std::vector<Operand> elements;
};

struct Instruction {
    std::string name;         ///< Opcode with all modifiers: "add.rn.f32".
    std::int32_t guard = -1;  ///< Register index of @p, -1: none.
    bool guard_negated = false;
    std::vector<Operand> operands;
    std::uint32_t line = 0;
    SourceLine source;   ///< In the file of the kernel itself: of what was inlined from elsewhere, the call.
    SourceLine inlined;  ///< Where that came from, if it did.
    std::string text;    ///< As written, blanks folded.
    std::string callee;  ///< Of a call; its operands are results, then arguments.
    std::uint32_t result_count = 0;  ///< Of a call.
};

struct Label {
    std::string name;
    std::uint32_t position = 0;          ///< Index of the instruction that follows; may be one past the last.
    std::vector<std::uint32_t> targets;  ///< Of .branchtargets: labels.
};

struct Entry {
    std::string name;
    std::uint32_t line = 0;
    std::vector<Variable> variables;  ///< Parameters first, then what the body and the module declare and it may name.
    std::uint32_t param_count = 0;
    std::uint32_t param_bytes = 0;
    std::uint32_t result_count = 0;  ///< Of a function: the first of its variables, parameters follow.
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;  ///< Of a thread.
    bool uses_dynamic_shared = false;
    std::uint32_t max_threads = 0;
    Dim3 required_block{0, 0, 0};
    std::vector<Register> registers;
    std::vector<Label> labels;
    std::vector<Instruction> instructions;
};

struct Module {
    std::string file_name;
    std::uint32_t target = 0;         ///< 80 for sm_80.
    std::vector<Variable> variables;  ///< .global, .const and .shared at module scope.
    std::vector<Entry> entries;
    std::vector<Entry> functions;  ///< With a body. Their calls are expanded in the entries.
    std::map<std::uint32_t, std::string> source_files;
};

}  // namespace gradguard::vgpu::ast
