// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

void expect_one_screen(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    std::size_t count = 0;
    while (std::getline(lines, line)) {
        ++count;
        ASSERT_LE(line.size(), 100U) << line;
    }
    ASSERT_LE(count, 40U) << text;
    ASSERT_GE(count, 2U);
}

TEST(Show, AnyCaseIsOneScreen) {
    for (const Operation operation : kOperations) {
        for (const bool invalid : {false, true}) {
            CaseShape shape;
            shape.operation = operation;
            shape.invalid = invalid;
            shape.max_later_steps = 6;
            shape.max_entries = 12;
            for (std::uint64_t index = 0; index < 500; ++index) {
                const CaseRecipe recipe = draw_case(shape, 1, "show", index);
                expect_one_screen(show(recipe));
                expect_one_screen(show(realise(recipe)));
            }
        }
    }
}

CaseRecipe small() {
    CaseRecipe recipe;
    EntryRecipe& entry = recipe.entries.emplace_back();
    entry.parameters.shape = entry.gradients.shape = {2};
    entry.gradients.dtype = DType::kF16;
    entry.gradients.byte_offset = 2;
    entry.gradients.values.overrides = {{1, 0xC000}};
    recipe.guard.max_norm.reset();
    return recipe;
}

TEST(Show, ARecipeSaysFillsBitsAndValues) {
    EXPECT_EQ(show(small()),
              "guarded_step, 1 entries, schedule seed 0\n"
              "gradient_scale 0x1p+0 (0x3F800000)\n"
              "learning_rate 0x1.0624dep-10 (0x3A83126F), weight_decay 0x1.a36e2ep-14 (0x38D1B717)\n"
              "beta1 0x1.ccccccp-1 (0x3F666666), beta2 0x1.ff7ceep-1 (0x3F7FBE77)\n"
              "epsilon 0x1.4f8b58p-17 (0x3727C5AC)\n"
              "max_norm absent, guard epsilon 0x1.0c6f7ap-20 (0x358637BD), nonfinite Skip\n"
              "entry 0: no state\n"
              "  parameters        F32 [2] zero: 0x0p+0 (0x00000000), 0x0p+0 (0x00000000)\n"
              "  gradients         F16 [2] at byte 2 zero, [1]=0xC000: 0x0p+0 (0x0000), -0x1p+1 (0xC000)\n");
}

TEST(Show, ACaseWithoutRecipeHasNoFills) {
    const std::string text = show(realise(small()));
    EXPECT_NE(text.find("  gradients         F16 [2] at byte 2: 0x0p+0 (0x0000), -0x1p+1 (0xC000)\n"),
              std::string::npos);
}

TEST(Show, WhatIsNeverReadSaysSo) {
    CaseRecipe recipe = small();
    recipe.entries[0].gradients.strides = {{3}};
    EXPECT_NE(show(recipe).find("F16 [2] at byte 2 strides [3] in 6 bytes, never read\n"), std::string::npos);
}

TEST(Show, LaterStepsAreShown) {
    CaseRecipe recipe = small();
    LaterRecipe& later = recipe.later.emplace_back();
    later.control.skip_update = true;
    later.gradients.resize(1);
    later.gradients[0].overrides = {{0, 0x3C00}};
    const std::string text = show(recipe);
    EXPECT_NE(text.find("later step 1: gradient_scale 0x1p+0 (0x3F800000), skip_update\n"), std::string::npos);
    EXPECT_NE(text.find("  gradients of entry 0 zero, [0]=0x3C00: 0x1p+0 (0x3C00), 0x0p+0 (0x0000)\n"),
              std::string::npos);
}

}  // namespace
}  // namespace gradguard::harness
