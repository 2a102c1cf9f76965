// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

CaseRecipe one_entry(const std::vector<std::uint64_t>& shape) {
    CaseRecipe recipe;
    EntryRecipe& entry = recipe.entries.emplace_back();
    entry.parameters.shape = entry.gradients.shape = shape;
    return recipe;
}

TEST(Realise, StridesAreRowMajorUnlessGiven) {
    CaseRecipe recipe = one_entry({2, 3, 4});
    EXPECT_EQ(realise(recipe).entries[0].gradients.layout.strides, (std::vector<std::int64_t>{12, 4, 1}));
    recipe.entries[0].gradients.shape = {1, 3};
    recipe.entries[0].gradients.strides = {{-7, 1}};
    EXPECT_EQ(realise(recipe).entries[0].gradients.layout.strides, (std::vector<std::int64_t>{-7, 1}));
}

TEST(Realise, StorageHoldsOffsetElementsAndSlack) {
    CaseRecipe recipe = one_entry({5});
    TensorRecipe& gradients = recipe.entries[0].gradients;
    gradients.dtype = DType::kBF16;
    gradients.byte_offset = 6;
    gradients.slack_bytes = 3;
    const CaseTensor tensor = realise(recipe).entries[0].gradients;
    EXPECT_EQ(tensor.storage_bytes, 6U + 10U + 3U);
    EXPECT_EQ(tensor.layout.byte_offset, 6U);
    EXPECT_EQ(tensor.values.size(), 10U);
}

TEST(Realise, RankZeroIsOneElement) { EXPECT_EQ(elements_of(realise(one_entry({}))), 1U); }

TEST(Realise, ATensorBeyondItsStorageHasNoValues) {
    CaseRecipe recipe = one_entry({5});
    recipe.entries[0].gradients.slack_bytes = -1;
    const CaseTensor tensor = realise(recipe).entries[0].gradients;
    EXPECT_EQ(tensor.storage_bytes, 19U);
    EXPECT_TRUE(tensor.values.empty());
}

TEST(Realise, AHugeShapeNeedsNoStorage) {
    CaseRecipe recipe = one_entry({1ULL << 40U, 1ULL << 40U});
    const CaseTensor tensor = realise(recipe).entries[0].gradients;
    EXPECT_EQ(tensor.storage_bytes, 0U);
    EXPECT_TRUE(tensor.values.empty());
}

TEST(Realise, LaterGradientsHaveTheDTypeAndLengthOfTheFirst) {
    CaseRecipe recipe = one_entry({3});
    recipe.entries[0].gradients.dtype = DType::kF16;
    LaterRecipe& later = recipe.later.emplace_back();
    later.gradients.resize(1);
    later.gradients[0].overrides = {{2, 0x3C00}};
    EXPECT_EQ(words_of(realise(recipe).later[0].gradients[0], DType::kF16), (std::vector<std::uint32_t>{0, 0, 0x3C00}));
}

TEST(Realise, TheLayoutAloneIsThatOfTheCase) {
    for (std::uint64_t index = 0; index < 500; ++index) {
        CaseShape shape;
        shape.max_later_steps = 2;
        shape.invalid = index % 2 == 0;
        const CaseRecipe recipe = draw_case(shape, 1, "layout", index);
        Case whole = realise(recipe);
        Case layout = realise_layout(recipe);
        ASSERT_EQ(whole.entries.size(), layout.entries.size());
        for (std::size_t i = 0; i < whole.entries.size(); ++i) {
            whole.entries[i].gradients.values.clear();
            ASSERT_EQ(whole.entries[i].gradients, layout.entries[i].gradients);
        }
        ASSERT_EQ(whole.later.size(), layout.later.size());
    }
}

}  // namespace
}  // namespace gradguard::harness
