// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/plan.h"

#include <algorithm>

namespace gradguard::harness {

Plan::Plan(const std::vector<const Property*>& properties, const std::vector<SubjectAbilities>& subjects) {
    for (const Property* property : properties) {
        const std::size_t first = pairs_.size();
        for (const SubjectAbilities& subject : subjects) {
            if (!property->applies(subject.abilities)) continue;
            subject_of_.push_back(pairs_.size() - first);
            pairs_.push_back({property, subject.name, subject.abilities});
        }
        subjects_of_.resize(pairs_.size(), pairs_.size() - first);
    }
    // Each pair's cases lie evenly in the round: the k-th of w at (2k + 1) / 2w of it.
    struct Moment {
        Slot slot;
        unsigned numerator, denominator;
    };
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const unsigned weight = pairs_[i].property->weight;
        for (unsigned k = 0; k < weight; ++k) moments.push_back({{i, k}, 2 * k + 1, 2 * weight});
    }
    std::ranges::stable_sort(moments, [](const Moment& a, const Moment& b) {
        return a.numerator * b.denominator < b.numerator * a.denominator;
    });
    for (const Moment& moment : moments) round_.push_back(moment.slot);
}

Plan::Place Plan::at(std::uint64_t number) const {
    const Slot& slot = round_[number % round_.size()];
    const std::uint64_t own = number / round_.size() * pairs_[slot.pair].property->weight + slot.position;
    return {slot.pair, own * subjects_of_[slot.pair] + subject_of_[slot.pair]};
}

CaseRecipe recipe_of(const Pair& pair, const ShapeOptions& options, std::uint64_t seed, std::uint64_t index) {
    return draw_case(shape_of(*pair.property, pair.abilities, options, index), seed, pair.property->name, index);
}

Case case_of(const Pair& pair, const CaseRecipe& recipe) {
    Case c = realise(recipe);
    c.property = pair.property->name;
    c.subject = pair.subject;
    return c;
}

}  // namespace gradguard::harness
