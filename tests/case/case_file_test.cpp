// SPDX-License-Identifier: Apache-2.0
#include "harness/case/case_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/generators/generators.h"
#include "harness/io/file_error.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

CaseTensor tensor_of(const testing::Gradient& values) {
    CaseTensor tensor;
    tensor.layout = {values.dtype, {values.elements}, {1}, 0};
    tensor.storage_bytes = values.bytes.size();
    tensor.values = values.bytes;
    return tensor;
}

/// One entry of two elements with a state.
Case small_case() {
    Case c;
    CaseEntry& entry = c.entries.emplace_back();
    entry.parameters = tensor_of(testing::f32({1.0F, -2.0F}));
    entry.gradients = tensor_of(testing::bf16({0.5F, -0.0F}));
    entry.gradients.layout.byte_offset = 2;
    entry.gradients.storage_bytes = 6;
    CaseState& state = entry.state.emplace();
    state.step = std::numeric_limits<std::uint64_t>::max() - 1;
    state.first_moment = tensor_of(testing::f32({0.25F, 0.0F}));
    state.second_moment = tensor_of(testing::f32({3.0F, 4.0F}));
    c.guard.max_norm.reset();
    c.later.push_back({StepControl{}, {testing::bf16({2.0F, 1.0F}).bytes}});
    c.schedule_seed = 17;
    return c;
}

constexpr const char* kSmallText = R"({
  "schema": 1,
  "operation": "guarded_step",
  "property": "",
  "subject": "",
  "schedule_seed": 17,
  "options": {
    "learning_rate": "0x3A83126F",
    "beta1": "0x3F666666",
    "beta2": "0x3F7FBE77",
    "epsilon": "0x3727C5AC",
    "weight_decay": "0x38D1B717",
    "amsgrad": false,
    "maximize": false
  },
  "control": {
    "gradient_scale": "0x3F800000",
    "skip_update": false
  },
  "guard": {
    "max_norm": null,
    "epsilon": "0x358637BD",
    "nonfinite": "Skip"
  },
  "entries": [
    {
      "parameters": {
        "dtype": "F32",
        "shape": [2],
        "strides": [1],
        "byte_offset": 0,
        "storage_bytes": 8,
        "queue": 0,
        "values": "3F800000C0000000"
      },
      "gradients": {
        "dtype": "BF16",
        "shape": [2],
        "strides": [1],
        "byte_offset": 2,
        "storage_bytes": 6,
        "queue": 0,
        "values": "3F008000"
      },
      "state": {
        "step": 18446744073709551614,
        "first_moment": {
          "dtype": "F32",
          "shape": [2],
          "strides": [1],
          "byte_offset": 0,
          "storage_bytes": 8,
          "queue": 0,
          "values": "3E80000000000000"
        },
        "second_moment": {
          "dtype": "F32",
          "shape": [2],
          "strides": [1],
          "byte_offset": 0,
          "storage_bytes": 8,
          "queue": 0,
          "values": "4040000040800000"
        },
        "max_second_moment": null
      }
    }
  ],
  "later": [
    {
      "control": {
        "gradient_scale": "0x3F800000",
        "skip_update": false
      },
      "gradients": [
        "40003F80"
      ]
    }
  ]
}
)";

TEST(CaseFile, ACaseHasOneText) { EXPECT_EQ(case_to_json(small_case()), kSmallText); }

TEST(CaseFile, TheTextIsReadBackExactly) { EXPECT_TRUE(identical(case_from_json(kSmallText), small_case())); }

TEST(CaseFile, EveryMemberCountsForIdentity) {
    const Case c = small_case();
    const auto differs = [&](auto change) {
        Case other = c;
        change(other);
        return !identical(other, c);
    };
    EXPECT_FALSE(differs([](Case&) {}));
    EXPECT_TRUE(differs([](Case& o) { o.operation = Operation::kStatistics; }));
    EXPECT_TRUE(differs([](Case& o) { o.entries[0].gradients.values[0] ^= std::byte{1}; }));
    EXPECT_TRUE(differs([](Case& o) { o.entries[0].parameters.layout.byte_offset = 4; }));
    EXPECT_TRUE(differs([](Case& o) { o.entries[0].state->step = 3; }));
    EXPECT_TRUE(differs([](Case& o) { o.options.weight_decay = 0.0F; }));
    EXPECT_TRUE(differs([](Case& o) { o.options.amsgrad = true; }));
    EXPECT_TRUE(differs([](Case& o) { o.control.skip_update = true; }));
    EXPECT_TRUE(differs([](Case& o) { o.guard.max_norm = 1.0F; }));
    EXPECT_TRUE(differs([](Case& o) { o.guard.nonfinite = NonFinitePolicy::kError; }));
    EXPECT_TRUE(differs([](Case& o) { o.later[0].gradients[0][0] ^= std::byte{1}; }));
    EXPECT_TRUE(differs([](Case& o) { o.later[0].control.gradient_scale = 2.0F; }));
    EXPECT_TRUE(differs([](Case& o) { o.schedule_seed = 0; }));
    EXPECT_TRUE(differs([](Case& o) { o.property = "p"; }));
    EXPECT_TRUE(differs([](Case& o) { o.subject = "s"; }));
}

TEST(CaseFile, SignsOfZeroAndPayloadsOfNaNAreKept) {
    Case c = small_case();
    c.options.learning_rate = -0.0F;
    c.options.epsilon = reference::float_of(0x7F812345U);
    c.guard.max_norm = -0.0F;
    EXPECT_TRUE(identical(case_from_json(case_to_json(c)), c));
}

TEST(CaseFile, DrawnCasesOfEveryOperationAreReadBackExactly) {
    for (const Operation operation : {Operation::kGuardedStep, Operation::kUnguardedStep, Operation::kStatistics}) {
        for (const bool invalid : {false, true}) {
            CaseShape shape;
            shape.operation = operation;
            shape.invalid = invalid;
            shape.max_later_steps = 2;
            for (std::uint64_t index = 0; index < 2000; ++index) {
                Case c = realise(draw_case(shape, 1, "round trip", index));
                c.property = "round trip";
                c.subject = "vgpu/fmad";
                ASSERT_TRUE(identical(case_from_json(case_to_json(c)), c)) << case_to_json(c);
            }
        }
    }
}

TEST(CaseFile, WhatIsNeverReadHasNoValuesInLaterStepsEither) {
    Case c = small_case();
    c.entries[0].gradients.layout.strides = {2};
    c.entries[0].gradients.values.clear();
    c.later[0].gradients[0].clear();
    const std::string text = case_to_json(c);
    EXPECT_NE(text.find("\"values\": null"), std::string::npos);
    EXPECT_TRUE(identical(case_from_json(text), c));
}

TEST(CaseFile, ValuesThatDoNotFitTheShapeAreNotWritten) {
    Case c = small_case();
    c.entries[0].gradients.values.resize(6);
    try {
        case_to_json(c);
        FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "a case's tensor of shape [2]: want 4 bytes of values, got 6");
    }
}

TEST(CaseFile, AFileHoldsTheText) {
    const testing::TemporaryFolder folder;
    write_case(folder.path("a.json"), small_case());
    EXPECT_EQ(testing::read_bytes(folder.path("a.json")), kSmallText);
    EXPECT_TRUE(identical(read_case(folder.path("a.json")), small_case()));
    EXPECT_EQ(folder.entries(), 1U);
}

TEST(CaseFile, AMissingFileIsNamed) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.path("none.json");
    try {
        read_case(path);
        FAIL() << "read";
    } catch (const FileError& error) {
        EXPECT_EQ(error.what(), path + ": cannot read");
    }
}

TEST(CaseFile, ABrokenFileIsNamedWithItsMember) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.write("bad.json", R"({"schema": 2})");
    try {
        read_case(path);
        FAIL() << "read";
    } catch (const FileError& error) {
        EXPECT_EQ(error.what(), path + ": schema: want 1, got 2");
    }
}

}  // namespace
}  // namespace gradguard::harness
