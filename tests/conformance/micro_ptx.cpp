// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/micro_ptx.h"

#include <cstdio>

namespace gradguard::conformance {

namespace {

using Guard = Form::Guard;

std::string number(std::size_t value) { return std::to_string(value); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
    return text;
}

/// Writes one entry.
class EntryWriter {
  public:
    EntryWriter(const InstructionModel& model, const Form& form) : model_(model), form_(form) {}

    std::string write() {
        head();
        for (std::size_t k = 0; k < model_.sources.size(); ++k) load_source(k);
        const bool guarded = form_.guard != Guard::None;
        if (guarded) load_guard();
        if (form_.partial_warp) load_member_mask();
        if (guarded || form_.partial_warp) load_old_results();
        execute();
        for (std::size_t k = 0; k < result_count(); ++k) store_result(k);
        body_ += "    ret;\n}\n";
        return ".visible .entry " + form_.entry + "(.param .u64 in, .param .u64 out, .param .u64 stride)\n{\n" +
               declarations_ + body_;
    }

  private:
    std::size_t result_count() const { return form_.without_second_result ? 1 : model_.results.size(); }

    void declare(const std::string& name, int bits) {
        const std::string type = bits == 1 ? "pred" : "b" + std::to_string(bits);
        declarations_ += "    .reg ." + type + " " + name + ";\n";
    }
    void line(const std::string& text) { body_ += "    " + text + ";\n"; }

    void head() {
        declarations_ =
            "    .reg .b32 %block, %threads, %thread, %index, %word;\n"
            "    .reg .b64 %offset, %in, %out, %stride, %cell;\n";
        line("ld.param.u64 %in, [in]");
        line("ld.param.u64 %out, [out]");
        line("ld.param.u64 %stride, [stride]");
        line("mov.u32 %block, %ctaid.x");
        line("mov.u32 %threads, %ntid.x");
        line("mov.u32 %thread, %tid.x");
        line("mad.lo.s32 %index, %block, %threads, %thread");
        line("mul.wide.u32 %offset, %index, 8");
        line("add.s64 %in, %in, %offset");
        line("add.s64 %out, %out, %offset");
    }
    void address(const std::string& base, std::size_t cell) {
        line("mad.lo.s64 %cell, %stride, " + number(cell) + ", " + base);
    }
    void load(const std::string& reg, int bits, std::size_t cell) {
        address("%in", cell);
        if (bits == 1) {
            line("ld.global.b32 %word, [%cell]");
            line("setp.ne.u32 " + reg + ", %word, 0");
        } else {
            line("ld.global.b" + std::to_string(bits) + " " + reg + ", [%cell]");
        }
    }

    std::string source_register(std::size_t k) const { return "%a" + number(k); }
    bool is_literal(std::size_t k) const { return k < form_.literals.size() && form_.literals[k].has_value(); }
    void load_source(std::size_t k) {
        if (is_literal(k)) return;
        declare(source_register(k), source_register_bits(model_, form_, k));
        load(source_register(k), source_register_bits(model_, form_, k), k);
    }
    std::string source_text(std::size_t k) const {
        if (is_literal(k)) return literal_text(model_.sources[k].kind, *form_.literals[k]);
        return (form_.negated_source && k + 1 == model_.sources.size() ? "!" : "") + source_register(k);
    }
    std::string result_register(std::size_t k) const {
        return k == 0 && form_.alias >= 0 ? source_register(static_cast<std::size_t>(form_.alias)) : "%d" + number(k);
    }

    void load_guard() {
        declare("%guard", 1);
        load("%guard", 1, guard_cell(model_));
    }
    /// The guard is the own lane's bit of the member mask.
    void load_member_mask() {
        declare("%members", 32);
        declare("%guard", 1);
        load("%members", 32, guard_cell(model_));
        line("and.b32 %word, %thread, 31");
        line("shr.u32 %word, %members, %word");
        line("and.b32 %word, %word, 1");
        line("setp.ne.u32 %guard, %word, 0");
    }
    void load_old_results() {
        for (std::size_t k = 0; k < result_count(); ++k) {
            if (k == 0 && form_.alias >= 0) continue;
            load(declared_result(k), result_register_bits(model_, form_, k), old_cell(model_, k));
        }
    }
    std::string declared_result(std::size_t k) {
        declare(result_register(k), result_register_bits(model_, form_, k));
        return result_register(k);
    }

    void execute() {
        const bool has_old_results = form_.guard != Guard::None || form_.partial_warp;
        for (std::size_t k = 0; k < result_count() && !has_old_results; ++k) {
            if (k != 0 || form_.alias < 0) declared_result(k);
        }
        std::string operands = model_.body.empty() ? model_.pattern : model_.body;
        if (operands.empty()) {
            for (std::size_t k = 0; k < model_.results.size() + model_.sources.size(); ++k) {
                operands += (k == 0 ? "$" : ", $") + number(k);
            }
        }
        if (form_.without_second_result) operands = replaced(operands, "|$1", "");
        for (std::size_t k = model_.sources.size(); k-- > 0;) {
            operands = replaced(operands, "$" + number(model_.results.size() + k), source_text(k));
        }
        for (std::size_t k = 0; k < model_.results.size(); ++k) {
            operands = replaced(operands, "$" + number(k), result_register(k));
        }
        operands = replaced(operands, "$m", form_.partial_warp ? "%members" : "0xffffffff");
        if (!model_.body.empty()) {
            body_ += operands;
            return;
        }
        const bool guarded = form_.guard == Guard::If || form_.partial_warp;
        const std::string guard = guarded ? "@%guard " : form_.guard == Guard::IfNot ? "@!%guard " : "";
        line(guard + model_.written + " " + operands);
    }

    void store_result(std::size_t k) {
        const int bits = result_register_bits(model_, form_, k);
        address("%out", k);
        if (bits == 1) {
            line("selp.b32 %word, 1, 0, " + result_register(k));
            line("st.global.b32 [%cell], %word");
        } else {
            line("st.global.b" + std::to_string(bits) + " [%cell], " + result_register(k));
        }
    }

    const InstructionModel& model_;
    const Form& form_;
    std::string declarations_;
    std::string body_;
};

}  // namespace

std::size_t guard_cell(const InstructionModel& model) { return model.sources.size(); }
std::size_t old_cell(const InstructionModel& model, std::size_t k) { return model.sources.size() + 1 + k; }
std::size_t input_cells(const InstructionModel& model) { return model.sources.size() + 1 + model.results.size(); }

int source_register_bits(const InstructionModel& model, const Form& form, std::size_t k) {
    return form.wide && model.sources[k].may_be_wider ? 64 : model.sources[k].register_bits;
}

int result_register_bits(const InstructionModel& model, const Form& form, std::size_t k) {
    return form.wide && model.results[k].may_be_wider ? 64 : model.results[k].register_bits;
}

std::string literal_text(const OperandKind& kind, Bits bits) {
    char text[32];
    if (kind.kind == OperandKind::Kind::Float && kind.float_format == Format::F32) {
        std::snprintf(text, sizeof text, "0f%08llX", static_cast<unsigned long long>(bits));
    } else if (kind.kind == OperandKind::Kind::Float) {
        std::snprintf(text, sizeof text, "0d%016llX", static_cast<unsigned long long>(bits));
    } else if (kind.kind == OperandKind::Kind::Integer && kind.int_format.is_signed) {
        std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value_of(kind.int_format, bits)));
    } else {
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
    }
    return text;
}

std::string module_head(const std::string& instruction) {
    // PTX ISA, "PTX ISA Notes" and "Target ISA Notes" of the instructions: what sm_80 and version 7.0 do not have.
    NameParts parts(instruction);
    const auto first = parts.take_type();
    const auto second = parts.take_type();
    const auto is_bf16 = [](const auto& type) { return type && type->format == Format::BF16; };
    const bool from_f32 = first && first->format == Format::F32 && first->kind == PtxType::Kind::Float;
    const std::string& opcode = parts.opcode();
    const bool old_bf16 = opcode == "fma" || opcode == "min" || opcode == "max" || opcode == "abs" || opcode == "neg" ||
                          (opcode == "cvt" && from_f32);
    const bool ampere_86 = parts.take("xorsign");
    const auto has = [&](const char* part) { return instruction.find(part) != std::string::npos; };
    const bool new_tf32 = has(".tf32.f32") && !has(".rna.");
    const bool hopper = ((is_bf16(first) || is_bf16(second)) && !old_bf16) || new_tf32 || opcode == "elect" ||
                        opcode == "griddepcontrol" || has(".u16x2") || has(".s16x2") || has(".relu.s") ||
                        has("cluster") || has(".proxy.async");
    return std::string(has("::entry") ? ".version 8.3\n.target " : ".version 8.1\n.target ") +
           (hopper      ? "sm_90"
            : ampere_86 ? "sm_86"
                        : "sm_80") +
           "\n.address_size 64\n\n";
}

std::string micro_ptx(const InstructionModel& model, const std::vector<Form>& forms) {
    std::string text = "// " + model.name + ", in " + number(forms.size()) + " forms.\n" + module_head(model.name);
    for (const Form& form : forms) text += EntryWriter(model, form).write();
    return text;
}

}  // namespace gradguard::conformance
