// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "harness/generators/generators.h"
#include "harness/generators/random.h"

/// Parts of draw_case(), for this folder alone.
namespace gradguard::harness {

/// A positive number 2^e * [1, 2) with e in [low, high]; every mantissa bit drawn.
float draw_number(Random& random, int low, int high);

/// floor(log2(x)) of a positive finite number, subnormals included.
int exponent_of(float x);

/// Element counts of the tensors of a group.
std::vector<std::uint64_t> draw_sizes(const CaseShape& shape, Random& random);
/// A shape with `n` elements: ranks 0 to 5, dimensions of size 1 anywhere, empties of several forms.
std::vector<std::uint64_t> draw_dimensions(std::uint64_t n, Random& random);
/// Gives the tensor its dtype, its shape and a place in a storage of its own; its values stay as they are.
void place(TensorRecipe& tensor, DType dtype, const std::vector<std::uint64_t>& shape, Random& random);

/// `exponent`: the effective gradient's magnitude is about 2^exponent.
AdamWOptions draw_options(const CaseShape& shape, int exponent, Random& random);
StepControl draw_control(const CaseShape& shape, Random& random);
/// `norm`: about what the group's norm will be.
GradientGuardOptions draw_guard(const CaseShape& shape, double norm, Random& random);

/// Whether bad values may be drawn: the shape wants them and the subject knows what to do with them.
inline bool bad_allowed(const CaseShape& shape) { return shape.bad_values && shape.abilities.skips; }
DType draw_dtype(const Abilities& abilities, Random& random);

CaseRecipe draw_ordinary(const CaseShape& shape, Random& random);
CaseRecipe draw_balanced(const CaseShape& shape, Random& random);
/// Breaks one rule of a valid recipe.
void break_rule(CaseRecipe& recipe, Random& random);

}  // namespace gradguard::harness
