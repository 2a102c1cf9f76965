// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/ptx/expand_calls.h"

#include <algorithm>

#include "harness/vgpu/error.h"
#include "harness/vgpu/ptx/cursor.h"

namespace gradguard::vgpu::ptx {
namespace {

using ast::Entry;
using ast::Instruction;
using ast::Operand;

/// What the calls of a module may expand to, everything counted: a few lines that call each other make any number.
constexpr std::size_t kMaxExpanded = std::size_t{1} << 18;

class Expander {
  public:
    explicit Expander(const ast::Module& module) : module_(module) {}

    void run(Entry& entry) {
        const bool calls = std::any_of(entry.instructions.begin(), entry.instructions.end(),
                                       [](const Instruction& one) { return !one.callee.empty(); });
        if (!calls) return;
        const Entry original = entry;
        out_ = &entry;
        for (const Entry& other : module_.entries) elsewhere_ += &other == &entry ? 0 : size_of(other);
        entry.registers.clear();
        entry.labels.clear();
        entry.instructions.clear();
        Copy copy{original, {}, 0, 0, -1};
        for (std::uint32_t i = 0; i < original.variables.size(); ++i) copy.variables.push_back(i);
        append(copy);
    }

  private:
    /// One body on its way into the entry.
    struct Copy {
        const Entry& from;
        std::vector<std::uint32_t> variables;  ///< By index in `from`: in the entry.
        std::uint32_t first_register;
        std::uint32_t first_label;
        std::int64_t end_label;  ///< Where `ret` goes to; -1 in the entry itself.
    };

    static std::size_t size_of(const Entry& entry) {
        return entry.instructions.size() + entry.labels.size() + entry.registers.size() + entry.variables.size();
    }

    [[noreturn]] void refuse(const Instruction& call, const std::string& why) const {
        throw PtxError(module_.file_name, call.line, why + ": " + call.text);
    }

    void append(Copy& copy) {
        const Entry& from = copy.from;
        copy.first_register = static_cast<std::uint32_t>(out_->registers.size());
        copy.first_label = static_cast<std::uint32_t>(out_->labels.size());
        out_->registers.insert(out_->registers.end(), from.registers.begin(), from.registers.end());
        out_->labels.insert(out_->labels.end(), from.labels.begin(), from.labels.end());
        for (std::size_t i = copy.first_label; i < out_->labels.size(); ++i) {
            for (std::uint32_t& target : out_->labels[i].targets) target += copy.first_label;
        }
        std::vector<std::uint32_t> positions;
        for (const Instruction& instruction : from.instructions) {
            positions.push_back(static_cast<std::uint32_t>(out_->instructions.size()));
            if (elsewhere_ + size_of(*out_) > kMaxExpanded)
                refuse(instruction, "calls expand to too many instructions");
            if (instruction.callee.empty())
                append(copy, instruction);
            else
                expand(copy, instruction);
        }
        positions.push_back(static_cast<std::uint32_t>(out_->instructions.size()));
        for (std::size_t i = 0; i < from.labels.size(); ++i)
            out_->labels[copy.first_label + i].position = positions[from.labels[i].position];
    }

    void append(const Copy& copy, const Instruction& original) {
        Instruction instruction = original;
        if (instruction.guard >= 0) instruction.guard += static_cast<std::int32_t>(copy.first_register);
        for (Operand& operand : instruction.operands) rename(copy, operand);
        if (copy.end_label >= 0 && (instruction.name == "ret" || instruction.name == "ret.uni")) {
            instruction.name = instruction.name == "ret" ? "bra" : "bra.uni";
            instruction.operands = {label_operand(static_cast<std::uint32_t>(copy.end_label))};
        }
        out_->instructions.push_back(std::move(instruction));
    }

    static Operand label_operand(std::uint32_t label) {
        Operand operand;
        operand.kind = Operand::Kind::Label;
        operand.index = label;
        return operand;
    }

    void rename(const Copy& copy, Operand& operand) const {
        if (operand.kind == Operand::Kind::Register) operand.index += copy.first_register;
        if (operand.kind == Operand::Kind::Label) operand.index += copy.first_label;
        if (operand.kind == Operand::Kind::Variable) operand.index = copy.variables[operand.index];
        for (Operand& element : operand.elements) rename(copy, element);
    }

    std::uint32_t add_label(const std::string& name) {
        out_->labels.push_back({name, 0, {}});
        return static_cast<std::uint32_t>(out_->labels.size() - 1);
    }

    void expand(const Copy& caller, const Instruction& call) {
        const auto function = std::find_if(module_.functions.begin(), module_.functions.end(),
                                           [&](const Entry& one) { return one.name == call.callee; });
        if (function == module_.functions.end() && call.callee == "__assertfail") return fail(caller, call);
        if (function == module_.functions.end())
            refuse(call, "function '" + call.callee + "' has no body in this module");
        if (std::find(active_.begin(), active_.end(), &*function) != active_.end())
            refuse(call, "recursion of '" + call.callee + "' is not supported");
        if (active_.size() >= kMaxNesting) refuse(call, "calls nest too deeply");
        if (call.operands.size() != function->param_count || call.result_count != function->result_count)
            refuse(call, "'" + call.callee + "' has another number of parameters");
        const std::uint32_t end = add_label(call.callee + " returns");
        if (call.guard >= 0) {  // threads that do not call go round
            Instruction around = call;
            around.name = "bra";
            around.callee.clear();
            around.guard = call.guard + static_cast<std::int32_t>(caller.first_register);
            around.guard_negated = !call.guard_negated;
            around.operands = {label_operand(end)};
            out_->instructions.push_back(std::move(around));
        }
        Copy copy{*function, {}, 0, 0, end};
        for (std::uint32_t i = 0; i < function->variables.size(); ++i) {
            const bool is_formal = i < function->param_count;
            if (is_formal) {
                const std::uint32_t actual = caller.variables[call.operands[i].index];
                if (out_->variables[actual].bytes < function->variables[i].bytes)
                    refuse(call, "parameter '" + function->variables[i].name + "' is larger than its argument");
                copy.variables.push_back(actual);
            } else {
                copy.variables.push_back(variable_in_entry(function->variables[i]));
            }
        }
        active_.push_back(&*function);
        append(copy);
        active_.pop_back();
        out_->labels[end].position = static_cast<std::uint32_t>(out_->instructions.size());
    }

    /// assert() calls a function of the driver that ends the kernel with an error.
    void fail(const Copy& caller, const Instruction& call) {
        Instruction trap = call;
        trap.name = "trap";
        trap.callee.clear();
        trap.operands.clear();
        if (trap.guard >= 0) trap.guard += static_cast<std::int32_t>(caller.first_register);
        out_->instructions.push_back(std::move(trap));
    }

    /// Local variables are there once for each call, all others once.
    std::uint32_t variable_in_entry(const ast::Variable& variable) {
        if (variable.space != Space::Local) {
            for (std::uint32_t i = 0; i < out_->variables.size(); ++i) {
                if (out_->variables[i].name == variable.name && out_->variables[i].space == variable.space) return i;
            }
        }
        out_->variables.push_back(variable);
        return static_cast<std::uint32_t>(out_->variables.size() - 1);
    }

    const ast::Module& module_;
    Entry* out_ = nullptr;
    std::size_t elsewhere_ = 0;  ///< Size of the module's other entries.
    std::vector<const Entry*> active_;
};

/// Gives the variables of `space` their offsets; returns the bytes of them all.
std::uint32_t lay_out(const ast::Module& module, Entry& entry, Space space) {
    std::vector<ast::Variable*> variables;
    for (ast::Variable& variable : entry.variables) {
        if (variable.space == space) variables.push_back(&variable);
    }
    // In order of declaration; what is of dynamic size comes last, all of it at one place.
    std::stable_sort(variables.begin(), variables.end(), [](const ast::Variable* a, const ast::Variable* b) {
        return a->is_extern != b->is_extern ? b->is_extern : a->line < b->line;
    });
    std::uint64_t bytes = 0;
    for (ast::Variable* variable : variables) {
        bytes = (bytes + variable->align_bytes - 1) / variable->align_bytes * variable->align_bytes;
        variable->offset_bytes = bytes;
        bytes += variable->bytes;
        entry.uses_dynamic_shared |= variable->is_extern;
    }
    const bool is_shared = space == Space::Shared;
    if (bytes > (std::uint64_t{1} << (is_shared ? 31 : 20))) {
        throw PtxError(module.file_name, entry.line,
                       "entry '" + entry.name + "' has too much " + (is_shared ? "shared" : "local") + " memory");
    }
    return static_cast<std::uint32_t>(bytes);
}

}  // namespace

void expand_calls(const ast::Module& module, ast::Entry& entry) {
    Expander(module).run(entry);
    entry.static_shared_bytes = lay_out(module, entry, Space::Shared);
    entry.local_bytes = lay_out(module, entry, Space::Local);
}

}  // namespace gradguard::vgpu::ptx
