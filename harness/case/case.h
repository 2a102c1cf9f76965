// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/contract/options.h"
#include "reference/contract/tensor_layout.h"

namespace gradguard::harness {

/// A tensor of a case: how it lies in its storage, and its values.
struct CaseTensor {
    TensorLayout layout;
    std::uint64_t storage_bytes = 0;  ///< Size of the whole allocation.
    std::uint32_t queue = 0;          ///< Which queue it belongs to; a valid case has 0 everywhere.
    /// [count] of layout.dtype, dense and row-major whatever the strides. Empty where the layout breaks one of
    /// reference::tensor_rules(): such a tensor is never read.
    std::vector<std::byte> values;

    bool operator==(const CaseTensor& other) const {
        return layout.dtype == other.layout.dtype && layout.shape == other.layout.shape &&
               layout.strides == other.layout.strides && layout.byte_offset == other.layout.byte_offset &&
               storage_bytes == other.storage_bytes && queue == other.queue && values == other.values;
    }
};

/// Whether the tensor keeps all of reference::tensor_rules(), so that it has values: count(tensor) of them.
bool is_readable(const CaseTensor& tensor);
/// Elements of a readable tensor.
std::uint64_t count(const CaseTensor& tensor);

struct CaseState {
    std::uint64_t step = 1;  ///< Completed steps.
    CaseTensor first_moment;
    CaseTensor second_moment;
    std::optional<CaseTensor> max_second_moment;

    bool operator==(const CaseState&) const = default;
};

struct CaseEntry {
    CaseTensor parameters;
    CaseTensor gradients;
    std::optional<CaseState> state;  ///< Absent before the first update.

    bool operator==(const CaseEntry&) const = default;
};

/// What a case asks of a subject (contract section 2).
enum class Operation : std::uint8_t {
    kGuardedStep,
    kUnguardedStep,  ///< adamw_step; exactly one entry, the guard options mean nothing.
    kStatistics,     ///< gradient_stats_sync over the gradients of all entries.
};

/// A further step of the same group, from the state that the subject itself produced: new gradients in the dtypes and
/// layouts of the first.
struct LaterStep {
    StepControl control;
    std::vector<std::vector<std::byte>> gradients;  ///< One for each entry, as CaseTensor::values.
};

/// Inputs of one or several steps as plain data: values, never generator seeds.
struct Case {
    Operation operation = Operation::kGuardedStep;
    std::vector<CaseEntry> entries;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
    std::vector<LaterStep> later;
    std::uint64_t schedule_seed = 0;  ///< Of the virtual GPU.
    std::string property;             ///< Which property looks at it; empty: agreement with the oracle.
    std::string subject;              ///< On which subject it was found; empty: none.
};

/// The same bits in every member, NaN payloads and the sign of zero included.
bool identical(const Case& a, const Case& b);

}  // namespace gradguard::harness
