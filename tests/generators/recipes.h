// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "harness/generators/generators.h"

namespace gradguard::harness {

inline constexpr Operation kOperations[] = {Operation::kGuardedStep, Operation::kUnguardedStep, Operation::kStatistics};

/// The bits of a filled array.
inline std::vector<std::uint32_t> words_of(const std::vector<std::byte>& values, DType dtype) {
    const std::size_t width = element_bytes(dtype);
    std::vector<std::uint32_t> words(values.size() / width, 0);
    for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], values.data() + i * width, width);
    return words;
}
inline std::vector<std::uint32_t> filled(const ArrayRecipe& recipe, DType dtype, std::uint64_t n) {
    std::vector<std::byte> values(n * element_bytes(dtype));
    fill_array(recipe, dtype, n, values.data());
    return words_of(values, dtype);
}

inline std::uint64_t elements_of(const Case& c) {
    std::uint64_t sum = 0;
    for (const CaseEntry& entry : c.entries)
        sum += entry.gradients.values.size() / element_bytes(entry.gradients.layout.dtype);
    return sum;
}

}  // namespace gradguard::harness
