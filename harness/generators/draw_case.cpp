// SPDX-License-Identifier: Apache-2.0
#include <rapidcheck.h>

#include "harness/generators/drawing.h"
#include "harness/generators/rapidcheck_gen.h"

namespace gradguard::harness {
namespace {

CaseRecipe draw(const CaseShape& shape, std::uint64_t seed) {
    Random random(seed);
    CaseRecipe recipe = shape.balanced ? draw_balanced(shape, random) : draw_ordinary(shape, random);
    if (shape.invalid) break_rule(recipe, random);
    return recipe;
}

/// Draws its value only when asked for it, and its shrinks likewise.
struct Drawn {
    CaseShape shape;
    std::uint64_t seed = 0;

    CaseRecipe value() const { return draw(shape, seed); }
    rc::Seq<rc::Shrinkable<CaseRecipe>> shrinks() const {
        const auto simpler = [](const CaseRecipe& recipe) { return rc::seq::fromContainer(shrink(recipe)); };
        return rc::shrinkable::shrinkRecur(value(), simpler).shrinks();
    }
};

}  // namespace

rc::Gen<CaseRecipe> case_recipes(const CaseShape& shape) {
    return [shape](const rc::Random& random, int) {
        rc::Random stream(random);
        return rc::makeShrinkable<Drawn>(Drawn{shape, stream.next()});
    };
}

CaseRecipe draw_case(const CaseShape& shape, std::uint64_t seed, std::string_view property, std::uint64_t index) {
    const rc::Random::Key key{seed, hash_of(property), index, 0};
    return case_recipes(shape)(rc::Random(key)).value();
}

}  // namespace gradguard::harness
