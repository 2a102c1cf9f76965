// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gradguard::conformance {

/// What is tested: the instruction table's names and, beyond the table, the forms that the decoder builds from its rows
/// (combined comparisons, types, vectors and hints of loads and stores, control flow). Sorted.
std::vector<std::string> instructions_under_test();
/// The part that is not in the table.
std::vector<std::string> composed_instructions();

}  // namespace gradguard::conformance
