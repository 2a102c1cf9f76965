// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/case/case_names.h"
#include "harness/generators/generators.h"
#include "reference/exact/widen.h"

namespace gradguard::harness {
namespace {

constexpr std::size_t kLines = 40;
constexpr std::size_t kColumns = 100;
constexpr std::uint64_t kValues = 3;

std::string float_text(float x) { return fmt::format("{:a} (0x{:08X})", x, reference::bits_of(x)); }

std::string value_text(const std::byte* values, DType dtype, std::uint64_t i) {
    if (dtype == DType::kF32) {
        float x = 0;
        std::memcpy(&x, values + i * 4, 4);
        return float_text(x);
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, values + i * 2, 2);
    const float x = dtype == DType::kF16 ? reference::widen_f16(bits) : reference::widen_bf16(bits);
    return fmt::format("{:a} (0x{:04X})", x, bits);
}

/// The first values, and how many there are.
std::string values_text(const std::vector<std::byte>& values, DType dtype) {
    const std::uint64_t n = values.size() / element_bytes(dtype);
    std::string text;
    for (std::uint64_t i = 0; i < std::min(n, kValues); ++i) {
        text += i == 0 ? "" : ", ";
        text += value_text(values.data(), dtype, i);
    }
    return n > kValues ? text + fmt::format(", .. {}", n) : text;
}

std::string fill_text(const ArrayRecipe& array) {
    std::string text(to_string(array.fill));
    if (array.exponent != 0) text += fmt::format(" * 2^{}", array.exponent);
    if (array.absolute) text += ", absolute";
    if (!array.overrides.empty()) {
        text += fmt::format(", [{}]=0x{:X}", array.overrides[0].index, array.overrides[0].bits);
        if (array.overrides.size() > 1) text += fmt::format(" and {} more", array.overrides.size() - 1);
    }
    return text;
}

/// Lines of at most kColumns, and no more than kLines of them.
class Screen {
  public:
    void add(std::string line) {
        if (line.size() > kColumns) line = line.substr(0, kColumns - 3) + "...";
        lines_.push_back(std::move(line));
    }
    std::string text() const {
        std::string text;
        const std::size_t shown = lines_.size() <= kLines ? lines_.size() : kLines - 1;
        for (std::size_t i = 0; i < shown; ++i) text += lines_[i] + '\n';
        if (shown < lines_.size()) text += fmt::format("... and {} lines more\n", lines_.size() - shown);
        return text;
    }

  private:
    std::vector<std::string> lines_;
};

void add_tensor(Screen& screen, std::string_view name, const CaseTensor& tensor, const ArrayRecipe* recipe) {
    std::string line =
        fmt::format("  {:<17} {} {}", name, to_string(tensor.layout.dtype), list_to_string(tensor.layout.shape));
    if (tensor.layout.byte_offset != 0) line += fmt::format(" at byte {}", tensor.layout.byte_offset);
    const bool readable = is_readable(tensor);
    if (!readable) {
        line += fmt::format(" strides {} in {} bytes, never read", list_to_string(tensor.layout.strides),
                            tensor.storage_bytes);
    }
    if (tensor.queue != 0) line += fmt::format(" queue {}", tensor.queue);
    if (recipe != nullptr && readable) line += fmt::format(" {}", fill_text(*recipe));
    if (!tensor.values.empty()) line += fmt::format(": {}", values_text(tensor.values, tensor.layout.dtype));
    screen.add(line);
}

void add_entry(Screen& screen, std::size_t i, const CaseEntry& entry, const EntryRecipe* recipe) {
    const auto& state = entry.state;
    screen.add(fmt::format("entry {}: {}", i, state ? fmt::format("{} completed steps", state->step) : "no state"));
    const auto values = [](const TensorRecipe& tensor) { return &tensor.values; };
    add_tensor(screen, "parameters", entry.parameters, recipe != nullptr ? values(recipe->parameters) : nullptr);
    add_tensor(screen, "gradients", entry.gradients, recipe != nullptr ? values(recipe->gradients) : nullptr);
    if (!state) return;
    const StateRecipe* old = recipe != nullptr ? &*recipe->state : nullptr;
    add_tensor(screen, "first_moment", state->first_moment, old != nullptr ? values(old->first_moment) : nullptr);
    add_tensor(screen, "second_moment", state->second_moment, old != nullptr ? values(old->second_moment) : nullptr);
    if (!state->max_second_moment) return;
    add_tensor(screen, "max_second_moment", *state->max_second_moment,
               old != nullptr ? values(*old->max_second_moment) : nullptr);
}

std::string control_text(const StepControl& control) {
    return fmt::format("gradient_scale {}{}", float_text(control.gradient_scale),
                       control.skip_update ? ", skip_update" : "");
}

void add_options(Screen& screen, const Case& c) {
    if (c.operation == Operation::kStatistics) return;
    const AdamWOptions& o = c.options;
    screen.add(
        fmt::format("learning_rate {}, weight_decay {}", float_text(o.learning_rate), float_text(o.weight_decay)));
    screen.add(fmt::format("beta1 {}, beta2 {}", float_text(o.beta1), float_text(o.beta2)));
    screen.add(fmt::format("epsilon {}{}{}", float_text(o.epsilon), o.amsgrad ? ", amsgrad" : "",
                           o.maximize ? ", maximize" : ""));
    if (c.operation != Operation::kGuardedStep) return;
    screen.add(fmt::format("max_norm {}, guard epsilon {}, nonfinite {}",
                           c.guard.max_norm ? float_text(*c.guard.max_norm) : "absent", float_text(c.guard.epsilon),
                           to_string(c.guard.nonfinite)));
}

std::string show_case(const Case& c, const CaseRecipe* recipe) {
    Screen screen;
    std::string head = fmt::format("{}, {} entries", to_string(c.operation), c.entries.size());
    if (!c.later.empty()) head += fmt::format(", {} later steps", c.later.size());
    head += fmt::format(", schedule seed {}", c.schedule_seed);
    if (recipe != nullptr && !recipe->broken.empty()) head += fmt::format(", broken: {}", recipe->broken);
    if (!c.property.empty()) head += fmt::format(", property {}", c.property);
    if (!c.subject.empty()) head += fmt::format(", subject {}", c.subject);
    screen.add(head);
    screen.add(control_text(c.control));
    add_options(screen, c);
    for (std::size_t i = 0; i < c.entries.size(); ++i) {
        add_entry(screen, i, c.entries[i], recipe != nullptr ? &recipe->entries[i] : nullptr);
    }
    for (std::size_t s = 0; s < c.later.size(); ++s) {
        screen.add(fmt::format("later step {}: {}", s + 1, control_text(c.later[s].control)));
        for (std::size_t i = 0; i < c.entries.size(); ++i) {
            const std::string fill =
                recipe != nullptr ? fmt::format("{}: ", fill_text(recipe->later[s].gradients[i])) : "";
            screen.add(fmt::format("  gradients of entry {} {}{}", i, fill,
                                   values_text(c.later[s].gradients[i], c.entries[i].gradients.layout.dtype)));
        }
    }
    return screen.text();
}

}  // namespace

std::string show(const CaseRecipe& recipe) { return show_case(realise(recipe), &recipe); }
std::string show(const Case& c) { return show_case(c, nullptr); }

}  // namespace gradguard::harness
