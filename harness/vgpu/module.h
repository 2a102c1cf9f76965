// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/vgpu/finding.h"

namespace gradguard::vgpu {

struct ParamInfo {
    std::string name;
    std::uint32_t offset_bytes = 0;  ///< In the argument block that launch() takes.
    std::uint32_t size_bytes = 0;
    std::uint32_t align_bytes = 1;
};

/// A kernel of a module.
struct EntryInfo {
    std::string name;
    std::uint32_t line = 0;  ///< Where it begins in the PTX.
    std::vector<ParamInfo> params;
    std::uint32_t param_bytes = 0;          ///< Size of the argument block.
    std::uint32_t static_shared_bytes = 0;  ///< Without the dynamic part.
    bool uses_dynamic_shared = false;
    std::uint32_t max_threads = 0;  ///< From .maxntid or .reqntid; 0: the module does not say.
    Dim3 required_block{0, 0, 0};   ///< From .reqntid; 0, 0, 0: any.
};

namespace ast {
struct Module;
}

/// A checked PTX module. Immutable; may be shared by machines.
class Module {
  public:
    /// Parses and checks the whole module. Throws PtxError for anything it does not know or that is not allowed;
    /// nothing is skipped silently. `file_name` is for messages only. Approximate instructions are refused
    /// unless allowed here and by MachineOptions::allow_approximate.
    static std::shared_ptr<const Module> load(std::string_view ptx, std::string file_name,
                                              bool allow_approximate = false);

    explicit Module(std::unique_ptr<const ast::Module> syntax);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    std::span<const EntryInfo> entries() const { return entries_; }
    /// Null when there is no such entry.
    const EntryInfo* find(std::string_view name) const;
    const std::string& file_name() const;

    /// Unique in the process, never reused.
    std::uint64_t id() const { return id_; }
    /// For the decoder.
    const ast::Module& syntax() const { return *syntax_; }

  private:
    std::unique_ptr<const ast::Module> syntax_;
    std::vector<EntryInfo> entries_;
    std::uint64_t id_;
};

/// The instruction table as names ("add.rn.f32", "ld.global.v4.b32", ...), sorted: what a module may use.
std::vector<std::string> instruction_names();

}  // namespace gradguard::vgpu
