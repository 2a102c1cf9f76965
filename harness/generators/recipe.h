// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"

namespace gradguard::harness {

/// How an array is filled, each element from a random word of its own. Names are stable: they appear in reports.
enum class Fill : std::uint8_t {
    kZero,
    kOrdinary,     ///< Normal-like, magnitudes of real gradients.
    kHeavyTailed,  ///< Magnitudes over many binades.
    kMountain,     ///< Rising and falling magnitudes along the array.
    kOneHot,       ///< One value, zeros elsewhere.
    kThresholds,   ///< Near the thresholds of numerics: 2^-63, 2^52, sqrt(FLT_MAX), least normal, +-1 ulp.
    kCancelling,   ///< Pairs of opposite sign, nearly equal.
    kSubnormal,
    kHuge,
    kAnyBits,   ///< Every bit pattern by class, NaN and infinities among them only where `bad`.
    kBalanced,  ///< Magnitudes in [1, 1.5) times 2^exponent; the sign belongs to the index, turned by an odd seed.
};
inline constexpr std::size_t kFills = 11;
/// "zero", "ordinary", "heavy-tailed", ...
std::string_view to_string(Fill fill);

struct Override {
    std::uint64_t index = 0;
    std::uint32_t bits = 0;  ///< In the tensor's dtype.
};

/// An array as it is drawn: small whatever its length; filled outside RapidCheck.
struct ArrayRecipe {
    Fill fill = Fill::kZero;
    std::uint64_t seed = 0;
    /// The fill's values times 2^exponent, saturating at the dtype's finite range. Fills that are made of bit patterns
    /// (thresholds, subnormal, huge, any bits) have their own place and ignore it.
    int exponent = 0;
    bool absolute = false;            ///< Sign bits cleared: second moments.
    bool bad = false;                 ///< kAnyBits draws NaN and infinities too.
    std::vector<Override> overrides;  ///< After everything else; an index beyond the array means nothing.
};

/// A tensor's place in its storage, and its values.
struct TensorRecipe {
    DType dtype = DType::kF32;
    std::vector<std::uint64_t> shape;
    std::optional<std::vector<std::int64_t>> strides;  ///< Absent: dense row-major.
    std::uint64_t byte_offset = 0;
    /// Storage beyond the last element; negative for an invalid tensor. The storage has byte_offset + bytes + slack
    /// bytes modulo 2^64, where a shape whose count breaks a rule counts as no bytes.
    std::int64_t slack_bytes = 0;
    std::uint32_t queue = 0;
    ArrayRecipe values;
};

struct StateRecipe {
    std::uint64_t step = 1;
    TensorRecipe first_moment, second_moment;
    std::optional<TensorRecipe> max_second_moment;
};

struct EntryRecipe {
    TensorRecipe parameters, gradients;
    std::optional<StateRecipe> state;
};

struct LaterRecipe {
    StepControl control;
    std::vector<ArrayRecipe> gradients;  ///< One for each entry.
};

struct CaseRecipe {
    Operation operation = Operation::kGuardedStep;
    std::vector<EntryRecipe> entries;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
    std::vector<LaterRecipe> later;
    std::uint64_t schedule_seed = 0;
    /// Which rule of contract section 3 draw_case() broke, one of invalid_rules(); empty: none.
    std::string_view broken;
};

/// Elements of a shape that keeps the rules; 0 where the count overflows.
std::uint64_t count_of(const TensorRecipe& tensor);

/// Writes `n` elements of `dtype` to `out`, n * element_bytes(dtype) bytes.
void fill_array(const ArrayRecipe& recipe, DType dtype, std::uint64_t n, std::byte* out);

/// Fills everything. A function of the recipe alone, the same on every machine.
Case realise(const CaseRecipe& recipe);
/// The same without values: layouts, options and steps only.
Case realise_layout(const CaseRecipe& recipe);

/// A case in one screen: layout, options, fills, the first values of each array as hexadecimal floats and bits.
std::string show(const CaseRecipe& recipe);
std::string show(const Case& c);

}  // namespace gradguard::harness
