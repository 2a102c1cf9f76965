// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/memory_ptx.h"

#include "tests/conformance/micro_ptx.h"

namespace gradguard::conformance {

namespace {

std::string number(std::size_t value) { return std::to_string(value); }

class MemoryWriter {
  public:
    MemoryWriter(const InstructionModel& model, const MemoryForm& form) : model_(model), form_(form) {}

    std::string write() {
        head();
        prepare_area();
        load_guard();
        load_registers();
        execute();
        store_registers();
        if (copies()) copy_area("%area", "%out", area_space(), "global");
        body_ += "    ret;\n}\n";
        const std::string parameter = model_.space == "param" ? ", .param .align 16 .b8 area[48]" : "";
        return ".visible .entry " + form_.entry + "(.param .u64 in, .param .u64 out" + parameter + ")\n{\n" +
               declarations_ + body_;
    }

  private:
    bool copies() const { return !is_uniform(model_) && !is_in_place(model_, form_); }
    std::string area_space() const { return model_.space == "local" ? "local" : "shared"; }
    int bits() const { return memory_register_bits(model_, form_); }
    void line(const std::string& text) { body_ += "    " + text + ";\n"; }
    void declare(const std::string& name, int size) {
        declarations_ += "    .reg ." + (size == 1 ? "pred" : "b" + std::to_string(size)) + " " + name + ";\n";
    }

    void head() {
        declarations_ =
            "    .reg .b32 %block, %threads, %thread, %index, %word, %area32;\n"
            "    .reg .b64 %offset, %in, %out, %area, %copy;\n";
        line("ld.param.u64 %in, [in]");
        line("ld.param.u64 %out, [out]");
        line("mov.u32 %block, %ctaid.x");
        line("mov.u32 %threads, %ntid.x");
        line("mov.u32 %thread, %tid.x");
        line("mad.lo.s32 %index, %block, %threads, %thread");
        line("mul.wide.u32 %offset, %index, " + number(kRecordBytes));
        line("add.s64 %in, %in, %offset");
        line("add.s64 %out, %out, %offset");
    }

    void prepare_area() {
        if (model_.space == "param") return;
        if (model_.space == "const") {
            line("mov.u64 %area, constants");
        } else if (is_in_place(model_, form_)) {
            line("mov.b64 %area, %in");
        } else {
            if (model_.space == "local") {
                declarations_ += "    .local .align 16 .b8 own_area[" + number(kAreaBytes) + "];\n";
                line("mov.u64 %area, own_area");
            } else {
                declarations_ += "    .shared .align 16 .b8 areas[" + number(kAreaBytes * kMemoryBlock) + "];\n";
                line("mov.u64 %area, areas");
                line("mad.wide.u32 %area, %thread, " + number(kAreaBytes) + ", %area");
            }
            copy_area("%in", "%area", "global", area_space());
        }
        if (form_.shared_behind_generic) {
            declare("%generic", 64);
            line("cvta.shared.u64 %generic, %area");
            line("add.s64 %generic, %generic, " + number(kAreaBase));
            address_ = "%generic";
        } else if (model_.has_32_bit_address) {
            line("cvt.u32.u64 %area32, %area");
            line("add.u32 %area32, %area32, " + number(kAreaBase));
            address_ = "%area32";
        } else {
            declare("%address", 64);
            line("add.s64 %address, %area, " + number(kAreaBase));
            address_ = "%address";
        }
    }
    void copy_area(const std::string& from, const std::string& to, const std::string& from_space,
                   const std::string& to_space) {
        for (std::size_t at = 0; at < kAreaBytes; at += 8) {
            line("ld." + from_space + ".b64 %copy, [" + from + "+" + number(at) + "]");
            line("st." + to_space + ".b64 [" + to + "+" + number(at) + "], %copy");
        }
    }

    void load_guard() {
        if (!form_.guarded) return;
        declare("%guard", 1);
        line("ld.global.b32 %word, [%in+" + number(kGuardAt) + "]");
        line("setp.ne.u32 %guard, %word, 0");
    }
    std::string cell(std::size_t k) const { return number(kCellsAt + 8 * k); }
    /// Elements, or operands, or (for loads) the old registers.
    std::size_t register_count() const {
        if (model_.shape == Shape::Atomic) return model_.sources.size() - 1;
        return static_cast<std::size_t>(model_.vector_elements);
    }
    void load_registers() {
        for (std::size_t k = 0; k < register_count(); ++k) {
            declare("%v" + number(k), bits());
            line("ld.global.b" + std::to_string(bits()) + " %v" + number(k) + ", [%in+" + cell(k) + "]");
        }
        if (returns_old()) {
            declare("%old", bits());
            line("ld.global.b" + std::to_string(bits()) + " %old, [%in+" + cell(3) + "]");
        }
    }
    bool returns_old() const { return model_.shape == Shape::Atomic && model_.results.size() == 2; }

    std::string address() const {
        const int offset = form_.offset;
        if (model_.space == "param") return "[area+" + std::to_string(static_cast<int>(kAreaBase) + offset) + "]";
        return "[" + address_ + (offset == 0 ? "" : "+" + std::to_string(offset)) + "]";
    }
    std::string registers() const {
        std::string list;
        for (std::size_t k = 0; k < register_count(); ++k) list += (k == 0 ? "%v" : ", %v") + number(k);
        return model_.vector_elements > 1 ? "{" + list + "}" : list;
    }
    void execute() {
        const std::string instruction = (form_.guarded ? "@%guard " : "") + model_.written + " ";
        if (model_.shape == Shape::Load) {
            line(instruction + registers() + ", " + address());
        } else if (returns_old()) {
            line(instruction + "%old, " + address() + ", " + registers());
        } else {
            line(instruction + address() + ", " + registers());
        }
    }
    void store_registers() {
        const std::string type = "st.global.b" + std::to_string(bits());
        if (model_.shape == Shape::Load) {
            for (std::size_t k = 0; k < register_count(); ++k) line(type + " [%out+" + cell(k) + "], %v" + number(k));
        }
        if (returns_old()) line(type + " [%out+" + cell(3) + "], %old");
    }

    const InstructionModel& model_;
    const MemoryForm& form_;
    std::string declarations_;
    std::string body_;
    std::string address_;
};

}  // namespace

bool is_uniform(const InstructionModel& model) { return model.space == "const" || model.space == "param"; }

bool is_in_place(const InstructionModel& model, const MemoryForm& form) {
    return model.space == "global" || (model.space.empty() && !form.shared_behind_generic);
}

int memory_register_bits(const InstructionModel& model, const MemoryForm& form) {
    const bool may_be_wider =
        model.shape == Shape::Store ? model.sources[0].may_be_wider : model.results[0].may_be_wider;
    return form.wide && may_be_wider ? 64 : model.results[0].register_bits;
}

std::vector<MemoryForm> memory_forms_of(const InstructionModel& model) {
    std::vector<MemoryForm> forms;
    const auto add_form = [&](std::string entry, int offset, bool guarded, bool wide) {
        MemoryForm form;
        form.entry = std::move(entry);
        form.offset = offset;
        form.guarded = guarded;
        form.wide = wide;
        forms.push_back(form);
        if (!model.space.empty()) return;
        form.entry += "_shared";
        form.shared_behind_generic = true;
        forms.push_back(form);
    };
    add_form("plain", 0, false, false);
    add_form("above", 16, false, false);
    add_form("below", -16, false, false);
    add_form("guarded", 0, true, false);
    const bool may_be_wider =
        model.shape == Shape::Store ? model.sources[0].may_be_wider : model.results[0].may_be_wider;
    if (may_be_wider) {
        add_form("wide", 0, false, true);
        add_form("guarded_wide", 16, true, true);
    }
    return forms;
}

std::string memory_ptx(const InstructionModel& model, const std::vector<MemoryForm>& forms) {
    std::string text = "// " + model.name + ", in " + number(forms.size()) + " forms.\n" + module_head(model.name);
    if (model.space == "const") text += ".const .align 16 .b8 constants[" + number(kAreaBytes) + "];\n";
    for (const MemoryForm& form : forms) text += MemoryWriter(model, form).write();
    return text;
}

}  // namespace gradguard::conformance
