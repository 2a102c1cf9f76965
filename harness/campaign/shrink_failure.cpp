// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/shrink_failure.h"

#include <utility>

#include "harness/generators/generators.h"

namespace gradguard::harness {
namespace {

std::uint64_t nonzero(DType dtype, const std::vector<std::byte>& values) {
    const std::uint64_t bytes = element_bytes(dtype);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i + bytes <= values.size(); i += bytes) {
        bool zero = true;
        for (std::size_t k = 0; k < bytes; ++k) {
            // The last byte holds the sign.
            zero = zero && (k + 1 == bytes ? values[i + k] & std::byte{0x7F} : values[i + k]) == std::byte{0};
        }
        if (!zero) ++count;
    }
    return count;
}

std::uint64_t nonzero(const CaseTensor& tensor) { return nonzero(tensor.layout.dtype, tensor.values); }

}  // namespace

ShrunkFailure shrink_failure(const CaseRecipe& recipe, const std::function<PropertyVerdict(const CaseRecipe&)>& check,
                             std::uint64_t evaluations, const std::atomic<bool>* stop) {
    ShrunkFailure best{recipe, check(recipe), 1, 0};
    bool simpler = true;
    while (simpler) {
        simpler = false;
        for (CaseRecipe& candidate : shrink(best.recipe)) {
            if (best.evaluations >= evaluations || (stop != nullptr && *stop)) return best;
            ++best.evaluations;
            PropertyVerdict verdict = check(candidate);
            if (!verdict.failed()) continue;
            best.recipe = std::move(candidate);
            best.verdict = std::move(verdict);
            ++best.steps;
            simpler = true;
            break;
        }
    }
    return best;
}

CaseSize size_of(const Case& c) {
    CaseSize size;
    for (std::size_t e = 0; e < c.entries.size(); ++e) {
        const CaseEntry& entry = c.entries[e];
        const DType dtype = entry.gradients.layout.dtype;
        size.elements += entry.gradients.values.size() / element_bytes(dtype);
        size.nonzero_gradients += nonzero(entry.gradients);
        for (const LaterStep& later : c.later) size.nonzero_gradients += nonzero(dtype, later.gradients[e]);
        size.nonzero_values += nonzero(entry.parameters);
        if (!entry.state) continue;
        size.nonzero_values += nonzero(entry.state->first_moment) + nonzero(entry.state->second_moment);
        if (entry.state->max_second_moment) size.nonzero_values += nonzero(*entry.state->max_second_moment);
    }
    size.nonzero_values += size.nonzero_gradients;
    return size;
}

}  // namespace gradguard::harness
