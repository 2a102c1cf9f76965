// SPDX-License-Identifier: Apache-2.0
// The device beside the virtual GPU, bit for bit where PTX promises equality: statistics always, the update without
// contraction. And every property of the campaign on the device, in both builds, its corpus first.
#include <filesystem>

#include "harness/campaign/campaign.h"
#include "harness/campaign/summary.h"
#include "harness/case/abilities.h"
#include "harness/generators/generators.h"
#include "property_tests/hardware/hardware_test.h"
#include "property_tests/subject_factory.h"
#include "tests/support/source_folder.h"

namespace gradguard::testing {
namespace {

constexpr std::uint64_t kSeed = 20261201;
constexpr std::uint64_t kCases = 150;  ///< For each operation.
constexpr std::uint64_t kCampaignCases = 400;

class HardwareAgreement : public Hardware {
  protected:
    harness::CampaignOptions campaign() const {
        harness::CampaignOptions options;
        options.seed = kSeed;
        options.subjects = {subject_name(true), subject_name(false)};
        for (const harness::Property& property : harness::properties()) options.properties.push_back(&property);
        options.factory = [](std::string_view name) { return subject(name); };
        return options;
    }
};
GRADGUARD_ON_HARDWARE(HardwareAgreement);

reference::HostUpdate entry_of(const harness::OutcomeEntry& entry) {
    reference::HostUpdate update{entry.parameters, std::nullopt, entry.updated};
    if (!entry.state) return update;
    update.state = {entry.state->step, entry.state->first_moment, entry.state->second_moment,
                    entry.state->max_second_moment};
    return update;
}

/// What is not the same in two steps, in words. Device calls and findings are not results.
std::string step_difference(const harness::StepOutcome& got, const harness::StepOutcome& want, bool update) {
    if (got.error.has_value() != want.error.has_value()) return got.error ? got.error->message : want.error->message;
    if (got.error) {
        const bool same = got.error->kind == want.error->kind && got.error->operand == want.error->operand &&
                          got.error->entry == want.error->entry;
        return same ? "" : got.error->message + " instead of " + want.error->message;
    }
    if (got.report.has_value() != want.report.has_value()) return "a report is missing";
    std::string text = got.report ? difference(*got.report, *want.report) : "";
    if (bits(got.clip_multiplier) != bits(want.clip_multiplier)) text += "another clip; ";
    if (got.skip_reason != want.skip_reason) text += "another reason to skip; ";
    if (got.entries.size() != want.entries.size()) return text + "not as many entries";
    for (std::size_t i = 0; update && i < got.entries.size(); ++i) {
        text += difference(entry_of(got.entries[i]), entry_of(want.entries[i]));
    }
    for (const std::string& line : got.inputs_changed) text += line + " was changed; ";
    return text;
}

TEST_P(HardwareAgreement, WithTheVirtualGpuIsBitForBit) {
    for (const bool contracted : {false, true}) {
        const auto here = subject(subject_name(contracted));
        const auto there = subject(contracted ? "vgpu/fmad" : "vgpu/nofmad");
        for (const auto operation :
             {harness::Operation::kGuardedStep, harness::Operation::kUnguardedStep, harness::Operation::kStatistics}) {
            harness::CaseShape shape;
            shape.abilities = here->abilities();
            shape.operation = operation;
            shape.max_elements = 3000;
            for (std::uint64_t index = 0; index < kCases; ++index) {
                const harness::Case c = harness::realise(harness::draw_case(shape, kSeed, "hardware", index));
                const harness::Outcome got = here->step(c);
                const harness::Outcome want = there->step(c);
                ASSERT_EQ(got.steps.size(), want.steps.size());
                for (std::size_t k = 0; k < got.steps.size(); ++k) {
                    ASSERT_EQ(step_difference(got.steps[k], want.steps[k], !contracted), "")
                        << here->name() << ", operation " << static_cast<int>(operation) << ", case " << index
                        << ", step " << k;
                }
            }
        }
    }
}

TEST_P(HardwareAgreement, EveryPropertyHoldsInEveryDrawnCase) {
    harness::CampaignOptions options = campaign();
    options.cases = kCampaignCases;
    const harness::CampaignResult result = run_campaign(options);
    EXPECT_EQ(problems_of(result), "");
    EXPECT_EQ(result.cases, kCampaignCases);
}

TEST_P(HardwareAgreement, EveryPropertyHoldsInTheCorpus) {
    harness::CampaignOptions options = campaign();
    options.cases = 0;
    options.corpus = (source_folder() / "property_tests/corpus").string();
    const harness::CampaignResult result = run_campaign(options);
    EXPECT_EQ(problems_of(result), "");
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(options.corpus)) {
        files += file.path().extension() == ".json" ? 1U : 0U;
    }
    EXPECT_GT(files, 0U);
    EXPECT_EQ(result.corpus_cases, 2 * files);
}

}  // namespace
}  // namespace gradguard::testing
