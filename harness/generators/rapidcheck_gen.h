// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rapidcheck/Gen.h>

#include "harness/generators/generators.h"

namespace gradguard::harness {

/// The cases of a shape as a generator of RapidCheck, shrinking by shrink(). A recipe needs one number of RapidCheck's
/// stream, which seeds the draws of everything inside: one number of its own generators costs as much as filling 100
/// elements. RapidCheck's size is not used: sizes straddle the constants of the geometry from the first case on.
rc::Gen<CaseRecipe> case_recipes(const CaseShape& shape);

}  // namespace gradguard::harness
