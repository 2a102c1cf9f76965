// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/vgpu/ptx/ast.h"
#include "harness/vgpu/ptx/cursor.h"
#include "harness/vgpu/ptx/declarations.h"

namespace gradguard::vgpu::ptx {

/// Parses the body of one entry, from '{' to its '}', into `entry` (whose parameters are there already).
class BodyParser {
  public:
    /// `text` is the whole module, for the wording of instructions.
    BodyParser(Cursor& cursor, const ast::Module& module, ast::Entry& entry)
        : cursor_(cursor), module_(module), entry_(entry) {}

    void run();

  private:
    /// .reg .b32 %r<N>: its registers come to be when they are named, for N is any number.
    struct RegisterRange {
        std::string stem;
        std::uint64_t count = 0;
        ast::Type type;

        bool has(const std::string& name) const;
    };
    struct Scope {
        std::int32_t parent = -1;
        std::vector<RegisterRange> ranges;
        std::unordered_map<std::string, std::uint32_t> registers;
        std::unordered_map<std::string, std::uint32_t> variables;
        std::unordered_map<std::string, std::uint32_t> labels;
    };
    struct LabelUse {
        std::uint32_t instruction;
        std::vector<std::uint32_t> path;  ///< Operand, then element indices.
        std::string name;
        std::int32_t scope;
    };

    struct TargetUse {
        std::uint32_t list;  ///< Label of the .branchtargets.
        std::string name;
        std::int32_t scope;
        std::uint32_t line;
    };

    void parse_block();
    void parse_branch_targets(std::uint32_t line);
    void parse_statement();
    void parse_registers();
    void parse_directive();
    void set_source(const Loc& loc);
    void parse_label();
    void parse_instruction();
    void parse_call(ast::Instruction& instruction);
    ast::Operand parse_operand();
    ast::Operand parse_operand_here();
    ast::Operand parse_negative();
    ast::Operand parse_name();
    ast::Operand parse_address();
    ast::Operand parse_list(char close);
    void add_register(const std::string& name, ast::Type type);
    void add_range(RegisterRange range);
    void refuse_special(const std::string& name) const;
    /// Index in the entry, of the innermost that has this name; nothing when there is none.
    std::optional<std::uint32_t> find_register(const std::string& name);
    void resolve_labels();
    const std::uint32_t* find(std::unordered_map<std::string, std::uint32_t> Scope::*table, const std::string& name,
                              std::int32_t scope) const;
    bool find_variable(const std::string& name, std::uint32_t& index);

    Cursor& cursor_;
    const ast::Module& module_;
    ast::Entry& entry_;
    std::vector<Scope> scopes_;
    std::int32_t scope_ = -1;
    std::size_t block_depth_ = 0;
    std::size_t operand_depth_ = 0;
    ast::SourceLine source_;
    ast::SourceLine inlined_;
    std::map<ast::SourceLine, ast::SourceLine> inlined_at_;  ///< By place: where it was inlined, as last said.
    std::vector<LabelUse> label_uses_;
    std::vector<TargetUse> target_uses_;
    std::vector<std::uint32_t> operand_path_;
};

}  // namespace gradguard::vgpu::ptx
