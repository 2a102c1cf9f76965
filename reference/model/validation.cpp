// SPDX-License-Identifier: Apache-2.0
#include "reference/model/validation.h"

#include <array>
#include <limits>

#include "reference/fp64/option_rules.h"
#include "reference/fp64/self_check.h"

namespace gradguard::reference {
namespace {

constexpr std::uint64_t kMost32 = 0xFFFFFFFFULL;

/// For rules that come after the one on the element count.
std::uint64_t count_of(const TensorDescription& t) { return element_count(t.layout.shape).value_or(0); }

bool dimensions_fit(const TensorDescription& t) {
    for (const std::uint64_t size : t.layout.shape) {
        if (size > kMost32) return false;
    }
    return true;
}

bool count_fits(const TensorDescription& t) {
    const auto count = element_count(t.layout.shape);
    // 4 * count <= 2^32 - 1, whatever the dtype.
    return count && *count <= kMost32 / 4;
}

bool is_dense(const TensorDescription& t) {
    if (count_of(t) == 0) return true;
    std::uint64_t expected = 1;
    for (std::size_t i = t.layout.shape.size(); i-- > 0;) {
        if (t.layout.shape[i] == 1) continue;
        if (t.layout.strides[i] < 0 || static_cast<std::uint64_t>(t.layout.strides[i]) != expected) return false;
        expected *= t.layout.shape[i];
    }
    return true;
}

bool fits_storage(const TensorDescription& t) {
    const std::uint64_t bytes = count_of(t) * element_bytes(t.layout.dtype);
    return t.layout.byte_offset <= t.storage_bytes && bytes <= t.storage_bytes - t.layout.byte_offset;
}

std::string shape_text(const TensorDescription& t) { return "shape " + list_to_string(t.layout.shape); }
std::string layout_text(const TensorDescription& t) {
    return shape_text(t) + ", strides " + list_to_string(t.layout.strides);
}
std::string storage_text(const TensorDescription& t) {
    return "byte offset " + std::to_string(t.layout.byte_offset) + ", " + std::to_string(count_of(t)) +
           " elements of " + std::string(to_string(t.layout.dtype)) + " in " + std::to_string(t.storage_bytes) +
           " bytes";
}

constexpr std::array<TensorRule, 6> kTensorRules{{
    {"as many strides as dimensions",
     [](const TensorDescription& t) { return t.layout.strides.size() == t.layout.shape.size(); }, layout_text},
    {"each dimension at most 2^32 - 1", dimensions_fit, shape_text},
    {"an element count that does not overflow, and 4 bytes for each at most 2^32 - 1", count_fits, shape_text},
    {"a dense contiguous layout", is_dense, layout_text},
    {"a byte offset that is a multiple of the element size",
     [](const TensorDescription& t) { return t.layout.byte_offset % element_bytes(t.layout.dtype) == 0; },
     storage_text},
    {"all bytes inside the allocation", fits_storage, storage_text},
}};

/// An operand with its public name and role.
struct NamedOperand {
    std::string_view name;
    const TensorDescription* tensor;
};

std::array<NamedOperand, 5> operands_of(const EntryDescription& entry) {
    std::array<NamedOperand, 5> operands{{{"parameters", &entry.parameters}, {"gradients", &entry.gradients}}};
    if (entry.state) {
        operands[2] = {"first_moment", &entry.state->first_moment};
        operands[3] = {"second_moment", &entry.state->second_moment};
        if (entry.state->max_second_moment) operands[4] = {"max_second_moment", &*entry.state->max_second_moment};
    }
    return operands;
}

std::string place_text(const TensorDescription& t) {
    return "device " + std::to_string(t.device) + " queue " + std::to_string(t.queue);
}

Violation other_queue(std::size_t entry, std::string_view operand, const TensorDescription& first,
                      const TensorDescription& tensor) {
    return make_violation(ErrorKind::kDifferentExecutionQueue, entry, operand,
                          "want " + place_text(first) + " like the group's first operand, got " + place_text(tensor));
}

/// Everything that one entry breaks, in the order of the rules; `all` false stops at the first. Of one operand a rule
/// that relies on an earlier one is not asked once that is broken.
class EntryCheck {
  public:
    EntryCheck(const EntryDescription& entry, std::size_t index, const EntryDescription& first, bool all)
        : entry_(entry), index_(index), first_(first), all_(all) {}

    std::vector<Violation> run(const AdamWOptions& options, const StepControl& control) {
        for (const auto& [name, tensor] : operands_of(entry_)) {
            if (tensor != nullptr) check_operand(name, *tensor);
        }
        if (goes_on()) check_state(options);
        if (goes_on()) check_step(control);
        return std::move(found_);
    }

  private:
    bool goes_on() const { return all_ || found_.empty(); }

    void check_operand(std::string_view name, const TensorDescription& tensor) {
        if (!goes_on()) return;
        if (auto violation = check_tensor(tensor, name == "gradients", index_, name)) found_.push_back(*violation);
        const auto& shape = entry_.parameters.layout.shape;
        if (goes_on() && tensor.layout.shape != shape) {
            found_.push_back(make_violation(ErrorKind::kShapeMismatch, index_, name,
                                            "want the parameters' shape " + list_to_string(shape) + ", got " +
                                                list_to_string(tensor.layout.shape)));
        }
        const TensorDescription& leader = first_.parameters;
        if (goes_on() && (tensor.device != leader.device || tensor.queue != leader.queue)) {
            found_.push_back(other_queue(index_, name, leader, tensor));
        }
    }

    void check_state(const AdamWOptions& options) {
        if (!entry_.state) return;
        const auto invalid = [&](const char* operand, const char* message) {
            found_.push_back(make_violation(ErrorKind::kInvalidState, index_, operand, message));
        };
        if (entry_.state->step < 1) invalid("step", "want at least 1 completed step, got 0");
        if (!goes_on() || entry_.state->max_second_moment.has_value() == options.amsgrad) return;
        invalid("max_second_moment", options.amsgrad ? "want the maximum with AMSGrad on, got none"
                                                     : "want no maximum with AMSGrad off, got one");
    }

    void check_step(const StepControl& control) {
        const bool advances = !control.skip_update && count_of(entry_.parameters) != 0;
        if (!advances || !entry_.state || entry_.state->step != std::numeric_limits<std::uint64_t>::max()) return;
        found_.push_back(make_violation(ErrorKind::kStepOverflow, index_, "step",
                                        "want step + 1 below 2^64, got step " + std::to_string(entry_.state->step)));
    }

    const EntryDescription& entry_;
    std::size_t index_;
    const EntryDescription& first_;
    bool all_;
    std::vector<Violation> found_;
};

template <class Options, std::size_t kCount>
std::vector<Violation> broken_rules(const std::array<OptionRule<Options>, kCount>& rules, const Options& options) {
    std::vector<Violation> found;
    for (const auto& rule : rules) {
        if (rule.accepts(options)) continue;
        found.push_back(
            make_violation(ErrorKind::kInvalidOption, std::nullopt, rule.operand,
                           "want " + std::string(rule.wanted) + ", got " + std::to_string(rule.value(options))));
    }
    return found;
}

}  // namespace

std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t size : shape) {
        if (size != 0 && count > std::numeric_limits<std::uint64_t>::max() / size) return std::nullopt;
        count *= size;
    }
    return count;
}

std::span<const TensorRule> tensor_rules() { return kTensorRules; }

std::optional<Violation> check_tensor(const TensorDescription& tensor, bool gradient, std::size_t entry,
                                      std::string_view operand) {
    const DType dtype = tensor.layout.dtype;
    const bool known = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
    if (gradient ? !known : dtype != DType::kF32) {
        return make_violation(ErrorKind::kInvalidTensor, entry, operand,
                              std::string("want dtype ") + (gradient ? "F32, F16 or BF16" : "F32") + ", got " +
                                  std::string(to_string(dtype)));
    }
    for (const auto& rule : kTensorRules) {
        if (rule.accepts(tensor)) continue;
        return make_violation(ErrorKind::kInvalidTensor, entry, operand,
                              "want " + std::string(rule.wanted) + ", got " + rule.got(tensor));
    }
    return std::nullopt;
}

std::optional<Violation> validate_step(std::span<const EntryDescription> entries, const AdamWOptions& options,
                                       const StepControl& control, const GradientGuardOptions* guard) {
    require_sound_arithmetic();
    if (auto violation = reference::check_options(options)) return violation;
    if (auto violation = reference::check_control(control)) return violation;
    if (guard != nullptr) {
        if (auto violation = reference::check_guard(*guard)) return violation;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        auto found = EntryCheck(entries[i], i, entries.front(), false).run(options, control);
        if (!found.empty()) return std::move(found.front());
    }
    return std::nullopt;
}

std::vector<Violation> violations_at_first_place(std::span<const EntryDescription> entries, const AdamWOptions& options,
                                                 const StepControl& control, const GradientGuardOptions* guard) {
    require_sound_arithmetic();
    if (auto found = broken_rules(kAdamWOptionRules, options); !found.empty()) return found;
    if (auto found = broken_rules(kStepControlRules, control); !found.empty()) return found;
    if (guard != nullptr) {
        if (auto found = broken_rules(kGuardOptionRules, *guard); !found.empty()) return found;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        auto found = EntryCheck(entries[i], i, entries.front(), true).run(options, control);
        if (!found.empty()) return found;
    }
    return {};
}

std::optional<Violation> validate_statistics(std::span<const TensorDescription> gradients, float gradient_scale) {
    require_sound_arithmetic();
    if (auto violation = reference::check_control({.gradient_scale = gradient_scale})) return violation;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (auto violation = check_tensor(gradients[i], true, i, "gradients")) return violation;
        if (gradients[i].device != gradients.front().device || gradients[i].queue != gradients.front().queue) {
            return other_queue(i, "gradients", gradients.front(), gradients[i]);
        }
    }
    return std::nullopt;
}

std::optional<Violation> check_limits(const DeviceLimits& limits) {
    const struct {
        const char* what;
        std::uint64_t wanted;
        std::uint64_t got;
    } rows[] = {{"threads in a block", 256, limits.threads_per_block},
                {"threads of a block in x", 256, limits.block_x},
                {"blocks in x", 1, limits.grid_x},
                {"bytes of shared memory in a block", 3072, limits.shared_bytes}};
    for (const auto& row : rows) {
        if (row.got >= row.wanted) continue;
        return make_violation(
            ErrorKind::kUnsupportedDevice, std::nullopt, "",
            "want at least " + std::to_string(row.wanted) + " " + row.what + ", got " + std::to_string(row.got));
    }
    return std::nullopt;
}

}  // namespace gradguard::reference
