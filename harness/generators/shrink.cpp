// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "harness/generators/shrinking.h"

namespace gradguard::harness {
namespace {

/// Kind, operand and what was wanted; empty for a valid recipe. Which entry it is and what came may change.
std::string rule_broken_by(const CaseRecipe& recipe) {
    const auto violation = violation_of(recipe);
    if (!violation) return {};
    std::string text(to_string(violation->kind));
    text += ' ' + violation->site.operand + ' ';
    // Shapes in the text change as a recipe shrinks.
    return text + violation->message.substr(0, violation->message.find_first_of(",["));
}

void drop_entries(CaseRecipe& recipe, std::size_t begin, std::size_t end) {
    const auto drop = [&](auto& list) {
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(begin), list.begin() + static_cast<std::ptrdiff_t>(end));
    };
    drop(recipe.entries);
    for (LaterRecipe& later : recipe.later) drop(later.gradients);
}

void propose_steps(Candidates& candidates) {
    const std::size_t later = candidates.original().later.size();
    if (later == 0) return;
    candidates.propose([](CaseRecipe& r) { r.later.clear(); });
    for (std::size_t i = 0; i < later; ++i) {
        // The i-th later step alone, from the first state.
        candidates.propose([&](CaseRecipe& r) {
            r.control = r.later[i].control;
            for (std::size_t e = 0; e < r.entries.size(); ++e) r.entries[e].gradients.values = r.later[i].gradients[e];
            r.later.clear();
        });
    }
    if (later > 1) candidates.propose([&](CaseRecipe& r) { r.later.resize(later / 2); });
    for (std::size_t i = 0; i < later; ++i) {
        candidates.propose([&](CaseRecipe& r) { r.later.erase(r.later.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
    candidates.propose([](CaseRecipe& r) {
        r.control = r.later[0].control;
        for (std::size_t e = 0; e < r.entries.size(); ++e) r.entries[e].gradients.values = r.later[0].gradients[e];
        r.later.erase(r.later.begin());
    });
}

void propose_fewer_entries(Candidates& candidates) {
    const std::size_t entries = candidates.original().entries.size();
    for (std::size_t i = 0; i < entries && entries > 2; ++i) {
        candidates.propose([&](CaseRecipe& r) {
            drop_entries(r, i + 1, entries);
            drop_entries(r, 0, i);
        });
    }
    for (std::size_t i = 0; i < entries; ++i) {
        candidates.propose([&](CaseRecipe& r) { drop_entries(r, i, i + 1); });
    }
}

void propose_less_state(Candidates& candidates) {
    const CaseRecipe& original = candidates.original();
    candidates.propose([](CaseRecipe& r) {
        for (EntryRecipe& entry : r.entries) entry.state.reset();
    });
    for (std::size_t i = 0; i < original.entries.size(); ++i) {
        if (!original.entries[i].state) continue;
        candidates.propose([&](CaseRecipe& r) { r.entries[i].state.reset(); });
        const std::uint64_t step = original.entries[i].state->step;
        for (const std::uint64_t simpler :
             {std::uint64_t{1}, std::uint64_t{2}, std::bit_floor(step), step / 2, step - 1}) {
            candidates.propose([&](CaseRecipe& r) { r.entries[i].state->step = simpler; });
        }
    }
}

void propose_plain_layouts(Candidates& candidates) {
    const CaseRecipe& original = candidates.original();
    const auto plain = [](TensorRecipe& tensor, std::uint64_t offset) {
        tensor.strides.reset();
        tensor.byte_offset = offset;
        tensor.slack_bytes = 0;
    };
    candidates.propose([&](CaseRecipe& r) {
        for (EntryRecipe& entry : r.entries) {
            for (TensorRecipe* tensor : tensors_of(entry)) plain(*tensor, 0);
        }
    });
    for (std::size_t i = 0; i < original.entries.size(); ++i) {
        candidates.propose([&](CaseRecipe& r) {
            const std::uint64_t n = count_of(r.entries[i].parameters);
            for (TensorRecipe* tensor : tensors_of(r.entries[i])) {
                tensor->shape = {n};
                tensor->strides.reset();
            }
        });
        const std::size_t tensors = tensors_of(original.entries[i]).size();
        for (std::size_t t = 0; t < tensors; ++t) {
            const auto change = [&](auto&& how) {
                candidates.propose([&](CaseRecipe& r) { how(*tensors_of(r.entries[i])[t]); });
            };
            change([&](TensorRecipe& tensor) { plain(tensor, 0); });
            change([&](TensorRecipe& tensor) { plain(tensor, element_bytes(tensor.dtype)); });
            change([](TensorRecipe& tensor) { tensor.strides.reset(); });
            change([](TensorRecipe& tensor) { tensor.byte_offset = 0; });
            change([](TensorRecipe& tensor) { tensor.slack_bytes = tensor.slack_bytes < 0 ? -1 : 0; });
            change([](TensorRecipe& tensor) { tensor.queue = tensor.queue != 0 ? 1 : 0; });
        }
    }
    candidates.propose([](CaseRecipe& r) { r.schedule_seed = 0; });
}

}  // namespace

Candidates::Candidates(const CaseRecipe& original)
    : original_(original), measure_(measure_of(original)), violation_(rule_broken_by(original)) {}

void Candidates::consider(CaseRecipe candidate) {
    if (!(measure_of(candidate) < measure_)) return;
    if (candidate.operation == Operation::kUnguardedStep && candidate.entries.size() != 1) return;
    if (rule_broken_by(candidate) != violation_) return;
    accepted_.push_back(std::move(candidate));
}

std::vector<CaseRecipe> shrink(const CaseRecipe& recipe) {
    Candidates candidates(recipe);
    propose_steps(candidates);
    propose_fewer_entries(candidates);
    propose_lengths(candidates);
    propose_less_state(candidates);
    propose_plain_layouts(candidates);
    propose_options(candidates);
    propose_values(candidates);
    return candidates.take();
}

}  // namespace gradguard::harness
