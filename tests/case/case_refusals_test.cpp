// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/case/case_file.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using Json = nlohmann::ordered_json;

/// A case of one entry of two F16 gradients without a state, as JSON.
Json sound() {
    Case c;
    CaseEntry& entry = c.entries.emplace_back();
    const auto tensor = [](const testing::Gradient& values) {
        CaseTensor t;
        t.layout = {values.dtype, {values.elements}, {1}, 0};
        t.storage_bytes = values.bytes.size();
        t.values = values.bytes;
        return t;
    };
    entry.parameters = tensor(testing::f32({1.0F, 2.0F}));
    entry.gradients = tensor(testing::f16({1.0F, 2.0F}));
    c.later.push_back({StepControl{}, {testing::f16({1.0F, 2.0F}).bytes}});
    return Json::parse(case_to_json(c));
}

/// The message that a text is refused with; "accepted" when it is not.
std::string refusal(const std::string& text) {
    try {
        case_from_json(text);
        return "accepted";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

/// Puts `value` at `place`, "/control/gradient_scale".
std::string refusal_of(const std::string& place, const Json& value) {
    Json json = sound();
    json[Json::json_pointer(place)] = value;
    return refusal(json.dump());
}

std::string refusal_without(const std::string& place, const std::string& member) {
    Json json = sound();
    json[Json::json_pointer(place)].erase(member);
    return refusal(json.dump());
}

TEST(CaseRefusals, TheSoundCaseIsAccepted) { EXPECT_EQ(refusal(sound().dump()), "accepted"); }

TEST(CaseRefusals, WhatIsNoJsonIsRefusedOnOneLine) {
    const std::string message = refusal("{");
    EXPECT_EQ(message.substr(0, 17), "case: want JSON: ");
    EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(CaseRefusals, ANumberBeyondFp64IsRefused) {
    EXPECT_EQ(refusal(R"({"schema": 1e999})").substr(0, 17), "case: want JSON: ");
}

TEST(CaseRefusals, AMemberThatIsThereTwiceIsRefused) {
    EXPECT_EQ(refusal(R"({"schema": 1, "control": {"skip_update": true, "skip_update": false}})"),
              "case: want each member once, got \"skip_update\" twice");
}

TEST(CaseRefusals, AnythingButAnObjectIsRefused) { EXPECT_EQ(refusal("[]"), "case: want an object, got a list"); }

TEST(CaseRefusals, AnotherSchemaIsRefused) {
    EXPECT_EQ(refusal_of("/schema", 2), "schema: want 1, got 2");
    EXPECT_EQ(refusal_of("/schema", "1"), "schema: want 1, got \"1\"");
}

TEST(CaseRefusals, AMissingMemberIsNamed) {
    EXPECT_EQ(refusal_without("", "schema"), "case: want a member \"schema\", got none");
    EXPECT_EQ(refusal_without("", "guard"), "case: want a member \"guard\", got none");
    EXPECT_EQ(refusal_without("/options", "beta1"), "options: want a member \"beta1\", got none");
    EXPECT_EQ(refusal_without("/entries/0/gradients", "values"),
              "entries[0].gradients: want a member \"values\", got none");
}

TEST(CaseRefusals, AnUnknownMemberIsNamed) {
    EXPECT_EQ(refusal_of("/seed", 1), "case: want no member \"seed\", got one");
    EXPECT_EQ(refusal_of("/entries/0/parameters/device", 1),
              "entries[0].parameters: want no member \"device\", got one");
    EXPECT_EQ(refusal_of("/later/0/state", nullptr), "later[0]: want no member \"state\", got one");
}

TEST(CaseRefusals, AnUnknownNameIsRefusedWithTheKnownOnes) {
    EXPECT_EQ(refusal_of("/entries/0/gradients/dtype", "F64"),
              "entries[0].gradients.dtype: want \"F32\" or \"F16\" or \"BF16\", got \"F64\"");
    EXPECT_EQ(refusal_of("/operation", "step"),
              "operation: want \"guarded_step\" or \"unguarded_step\" or \"statistics\", got \"step\"");
    EXPECT_EQ(refusal_of("/guard/nonfinite", "skip"), "guard.nonfinite: want \"Skip\" or \"Error\", got \"skip\"");
}

TEST(CaseRefusals, AFloatIsEightHexadecimalDigits) {
    const std::string wanted = "want the bits of an FP32 number, \"0x\" and 8 hexadecimal digits, got ";
    EXPECT_EQ(refusal_of("/options/beta1", "0x3F80000"), "options.beta1: " + wanted + "\"0x3F80000\"");
    EXPECT_EQ(refusal_of("/options/beta1", "0x3F80000G"), "options.beta1: " + wanted + "\"0x3F80000G\"");
    EXPECT_EQ(refusal_of("/guard/max_norm", "1.0"), "guard.max_norm: " + wanted + "\"1.0\"");
    EXPECT_EQ(refusal_of("/control/gradient_scale", 1.0), "control.gradient_scale: want a string, got 1.0");
}

TEST(CaseRefusals, ValuesMustFitTheShape) {
    EXPECT_EQ(refusal_of("/entries/0/gradients/values", "3C00400"),
              "entries[0].gradients.values: want 4 hexadecimal digits for each of 2 elements, got 7 characters");
    EXPECT_EQ(refusal_of("/entries/0/parameters/values", "3F800000"),
              "entries[0].parameters.values: want 8 hexadecimal digits for each of 2 elements, got 8 characters");
    EXPECT_EQ(refusal_of("/later/0/gradients/0", ""),
              "later[0].gradients[0]: want 4 hexadecimal digits for each of 2 elements, got 0 characters");
    EXPECT_EQ(refusal_of("/entries/0/gradients/values", nullptr),
              "entries[0].gradients.values: want a string, got null");
}

TEST(CaseRefusals, ValuesAreHexadecimal) {
    EXPECT_EQ(refusal_of("/entries/0/gradients/values", "3C00400x"),
              "entries[0].gradients.values: want hexadecimal digits, got \"400x\" at element 1");
}

TEST(CaseRefusals, ATensorThatIsNeverReadHasNoValues) {
    EXPECT_EQ(refusal_of("/entries/0/gradients/strides", Json::array({2})),
              "entries[0].gradients.values: want null for a layout that breaks a rule, got \"3C004000\"");
}

TEST(CaseRefusals, IntegersMustFitTheirMember) {
    EXPECT_EQ(refusal_of("/entries/0/gradients/queue", 1ULL << 32U),
              "entries[0].gradients.queue: want a non-negative integer of 32 bits, got 4294967296");
    EXPECT_EQ(refusal_of("/entries/0/gradients/shape", Json::array({-1})),
              "entries[0].gradients.shape[0]: want a non-negative integer of 64 bits, got -1");
    EXPECT_EQ(refusal_of("/entries/0/gradients/strides", Json::array({1.5})),
              "entries[0].gradients.strides[0]: want an integer of 64 bits, got 1.5");
    EXPECT_EQ(refusal_of("/schedule_seed", -1), "schedule_seed: want a non-negative integer of 64 bits, got -1");
}

TEST(CaseRefusals, ALaterStepHasGradientsForEachEntry) {
    EXPECT_EQ(refusal_of("/later/0/gradients", Json::array()),
              "later[0].gradients: want one for each of 1 entries, got 0");
}

TEST(CaseRefusals, AnUnguardedStepHasOneEntry) {
    Json json = sound();
    json["operation"] = "unguarded_step";
    json["entries"] = Json::array();
    json["later"] = Json::array();
    EXPECT_EQ(refusal(json.dump()), "entries: want exactly 1 for unguarded_step, got 0");
}

TEST(CaseRefusals, ALongValueIsCutInTheMessage) {
    const std::string message = refusal_of("/operation", std::string(100000, 'x'));
    EXPECT_LT(message.size(), 300U);
}

}  // namespace
}  // namespace gradguard::harness
