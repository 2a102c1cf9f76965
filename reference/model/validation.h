// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/options.h"
#include "reference/contract/tensor_layout.h"
#include "reference/fp64/violation.h"

namespace gradguard::reference {

/// A tensor as validation sees it: no values.
struct TensorDescription {
    TensorLayout layout;
    std::uint64_t storage_bytes = 0;  ///< Size of the whole allocation.
    std::uint64_t device = 0;         ///< Identity; equal means the same.
    std::uint64_t queue = 0;
};

struct StateDescription {
    std::uint64_t step = 1;  ///< Completed steps.
    TensorDescription first_moment;
    TensorDescription second_moment;
    std::optional<TensorDescription> max_second_moment;
};

struct EntryDescription {
    TensorDescription parameters;
    TensorDescription gradients;
    std::optional<StateDescription> state;
};

/// What a device grants (contract section 3, "device limits").
struct DeviceLimits {
    std::uint32_t threads_per_block = 0;
    std::uint32_t block_x = 0;
    std::uint32_t grid_x = 0;
    std::uint64_t shared_bytes = 0;  ///< Of one block.
};

/// Product of a shape in 64 bits, left to right; nothing when it overflows, even before a zero.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);

/// A rule that one tensor has to keep whatever its role. All are InvalidTensor.
struct TensorRule {
    std::string_view wanted;
    bool (*accepts)(const TensorDescription&);
    std::string (*got)(const TensorDescription&);
};
/// The rules in order; a later one may rely on the earlier.
std::span<const TensorRule> tensor_rules();

/// The first rule that a tensor breaks. `gradient`: F16 and BF16 are allowed too.
std::optional<Violation> check_tensor(const TensorDescription& tensor, bool gradient, std::size_t entry,
                                      std::string_view operand);

/// Contract section 3 for a guarded step: options, control, guard, then the entries in input order; the first entry
/// that offends is the one named, with the operand ("parameters", "gradients", "first_moment", "second_moment",
/// "max_second_moment", "step"). `guard` null: adamw_step and clipped_adamw_step, which take no guard options.
/// Device limits come after skipping: check_limits().
std::optional<Violation> validate_step(std::span<const EntryDescription> entries, const AdamWOptions& options,
                                       const StepControl& control, const GradientGuardOptions* guard);
inline std::optional<Violation> validate_step(std::span<const EntryDescription> entries, const AdamWOptions& options,
                                              const StepControl& control, const GradientGuardOptions& guard) {
    return validate_step(entries, options, control, &guard);
}

/// What validate_step finds, and everything else that is wrong at the same place: with the options, the control, the
/// guard, or the first entry that offends, one violation for each rule table and operand. Which of the rules that one
/// entry breaks is reported is not promised; empty when all is right.
std::vector<Violation> violations_at_first_place(std::span<const EntryDescription> entries, const AdamWOptions& options,
                                                 const StepControl& control, const GradientGuardOptions* guard);

/// Contract section 3 for gradient_stats_sync: the scale, then each gradient (site: index, "gradients").
std::optional<Violation> validate_statistics(std::span<const TensorDescription> gradients, float gradient_scale);

/// UnsupportedDevice where a reduction of a non-empty tensor does not fit.
std::optional<Violation> check_limits(const DeviceLimits& limits);

}  // namespace gradguard::reference
