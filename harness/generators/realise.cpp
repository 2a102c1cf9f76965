// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "harness/generators/recipe.h"
#include "reference/model/validation.h"

namespace gradguard::harness {
namespace {

constexpr std::uint64_t kMostElements = 0xFFFFFFFFULL / 4;

/// Dense row-major; a dimension of size 0 counts as 1. A shape that overflows has some strides or other.
std::vector<std::int64_t> row_major(const std::vector<std::uint64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::uint64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = static_cast<std::int64_t>(stride);
        stride *= std::max<std::uint64_t>(shape[i], 1);
    }
    return strides;
}

std::vector<std::byte> filled(const ArrayRecipe& recipe, DType dtype, std::uint64_t n) {
    std::vector<std::byte> values(n * element_bytes(dtype));
    fill_array(recipe, dtype, n, values.data());
    return values;
}

enum class Values : std::uint8_t { kFilled, kLeftOut };

CaseTensor realise_tensor(const TensorRecipe& recipe, Values values) {
    const std::uint64_t n = count_of(recipe);
    reference::TensorDescription description;
    description.layout.dtype = recipe.dtype;
    description.layout.shape = recipe.shape;
    description.layout.strides = recipe.strides ? *recipe.strides : row_major(recipe.shape);
    description.layout.byte_offset = recipe.byte_offset;
    description.storage_bytes =
        recipe.byte_offset + n * element_bytes(recipe.dtype) + static_cast<std::uint64_t>(recipe.slack_bytes);
    const bool readable = values == Values::kFilled &&
                          std::ranges::all_of(reference::tensor_rules(), [&](const reference::TensorRule& rule) {
                              return rule.accepts(description);
                          });
    CaseTensor tensor;
    tensor.layout = std::move(description.layout);
    tensor.storage_bytes = description.storage_bytes;
    tensor.queue = recipe.queue;
    if (readable) tensor.values = filled(recipe.values, recipe.dtype, n);
    return tensor;
}

CaseEntry realise_entry(const EntryRecipe& recipe, Values values) {
    CaseEntry entry;
    entry.parameters = realise_tensor(recipe.parameters, values);
    entry.gradients = realise_tensor(recipe.gradients, values);
    if (!recipe.state) return entry;
    CaseState& state = entry.state.emplace();
    state.step = recipe.state->step;
    state.first_moment = realise_tensor(recipe.state->first_moment, values);
    state.second_moment = realise_tensor(recipe.state->second_moment, values);
    if (recipe.state->max_second_moment)
        state.max_second_moment = realise_tensor(*recipe.state->max_second_moment, values);
    return entry;
}

}  // namespace

std::uint64_t count_of(const TensorRecipe& tensor) {
    const auto n = reference::element_count(tensor.shape);
    return n && *n <= kMostElements ? *n : 0;
}

namespace {

Case realise_first(const CaseRecipe& recipe, Values values) {
    Case c;
    c.operation = recipe.operation;
    c.options = recipe.options;
    c.control = recipe.control;
    c.guard = recipe.guard;
    c.schedule_seed = recipe.schedule_seed;
    c.entries.reserve(recipe.entries.size());
    for (const EntryRecipe& entry : recipe.entries) c.entries.push_back(realise_entry(entry, values));
    return c;
}

}  // namespace

Case realise_layout(const CaseRecipe& recipe) {
    Case c = realise_first(recipe, Values::kLeftOut);
    for (const LaterRecipe& later : recipe.later) c.later.push_back({later.control, {}});
    return c;
}

Case realise(const CaseRecipe& recipe) {
    Case c = realise_first(recipe, Values::kFilled);
    c.later.reserve(recipe.later.size());
    for (const LaterRecipe& later : recipe.later) {
        LaterStep& step = c.later.emplace_back();
        step.control = later.control;
        for (std::size_t i = 0; i < c.entries.size(); ++i) {
            const CaseTensor& first = c.entries[i].gradients;
            const std::uint64_t n = first.values.size() / element_bytes(first.layout.dtype);
            step.gradients.push_back(filled(later.gradients.at(i), first.layout.dtype, n));
        }
    }
    return c;
}

}  // namespace gradguard::harness
