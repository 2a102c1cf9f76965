// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/subject.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <stdexcept>

#include "harness/devices/registry.h"
#include "kernels/ptx/embedded.h"
#include "tests/subjects/cases.h"
#include "tests/support/temporary_folder.h"

namespace gradguard {
namespace {

using harness::make_subject;
using harness::Operation;
using testing::Case;
using testing::full_text;
using testing::results_text;

/// Three entries: with a state, empty, and in BF16 before its first step.
Case mixed_group(std::uint64_t seed, bool amsgrad = false) {
    vgpu::Random random(seed);
    Case c;
    c.options.amsgrad = amsgrad;
    c.control.gradient_scale = 3.0F;
    c.schedule_seed = random.next();
    c.entries.push_back(testing::entry_with_state(33, random, 7, amsgrad));
    c.entries.push_back(testing::entry(0, random));
    c.entries.push_back(testing::entry(20, random));
    c.entries[2].gradients = testing::bf16_tensor(testing::numbers(20, random, 0.5F));
    return c;
}

std::vector<Case> groups() {
    std::vector<Case> all = {mixed_group(1), mixed_group(2, true), mixed_group(3), mixed_group(4), mixed_group(5)};
    // An old maximum of -0 beside a negative v: of two zeros it would be +0, here it stays.
    all[1].entries[0].state->max_second_moment = testing::tensor(std::vector<float>(33, -0.0F));
    all[1].entries[0].state->second_moment = testing::tensor(std::vector<float>(33, -1.0F));
    all[2].guard.max_norm.reset();
    all[2].options.maximize = true;
    all[3].control.skip_update = true;
    all[4].entries[2].gradients = testing::bf16_tensor(std::vector<float>(20, std::numeric_limits<float>::infinity()));
    vgpu::Random random(6);
    all.emplace_back();  // several blocks
    all.back().entries.push_back(testing::entry_with_state(3000, random, 1));
    all.emplace_back();  // nothing at all
    for (std::size_t i = 0; i < 4; ++i) {
        all.push_back(mixed_group(7 + i));
        all.back().operation = Operation::kStatistics;
        all.push_back(mixed_group(7 + i));
        all.back().operation = Operation::kUnguardedStep;
        all.back().entries.resize(1);
    }
    return all;
}

TEST(Subjects, UncontractedLibraryEqualsTheOracle) {
    const auto library = make_subject("vgpu/nofmad");
    const auto oracle = make_subject("oracle");
    for (const Case& c : groups()) EXPECT_EQ(results_text(library->step(c)), results_text(oracle->step(c)));
}

TEST(Subjects, LibraryHasNoFindingsAndChangesNoInput) {
    for (const char* name : {"vgpu/fmad", "vgpu/nofmad"}) {
        const auto library = make_subject(name);
        for (const Case& c : groups()) {
            const harness::Outcome outcome = library->step(c);
            ASSERT_EQ(outcome.steps.size(), 1U);
            EXPECT_EQ(outcome.steps[0].findings, std::vector<std::string>{});
            EXPECT_EQ(outcome.steps[0].inputs_changed, std::vector<std::string>{});
        }
    }
}

TEST(Subjects, OutcomeDependsOnTheCaseAlone) {
    for (const char* name : {"vgpu/fmad", "oracle", "planted/missing-barrier-before-16", "planted/index-past-end"}) {
        const std::vector<Case> all = groups();
        std::vector<std::string> alone;
        for (const Case& c : all) alone.push_back(full_text(make_subject(name)->step(c)));
        const auto subject = make_subject(name);
        for (std::size_t i = all.size(); i-- > 0;) {
            EXPECT_EQ(full_text(subject->step(all[i])), alone[i]) << name << ", case " << i;
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(full_text(subject->step(all[i])), alone[i]) << name << ", case " << i << " again";
        }
    }
}

TEST(Subjects, ResultsDoNotDependOnTheObservers) {
    const auto watched = make_subject("vgpu/fmad");
    const auto alone = make_subject("vgpu/fmad", {.device = "vgpu", .observers = "none"});
    for (const Case& c : groups()) EXPECT_EQ(results_text(watched->step(c)), results_text(alone->step(c)));
}

TEST(Subjects, LaterStepsGoOnFromWhatTheSubjectLeft) {
    Case c = mixed_group(11, true);
    vgpu::Random random(12);
    for (int i = 0; i < 3; ++i) {
        harness::LaterStep later;
        later.control.gradient_scale = 3.0F;
        later.control.skip_update = i == 1;
        for (const auto& entry : c.entries) {
            const std::size_t count = entry.gradients.layout.shape[0];
            const std::vector<float> values = testing::numbers(count, random, 0.3F);
            later.gradients.push_back(entry.gradients.layout.dtype == DType::kF32
                                          ? testing::tensor(values).values
                                          : testing::bf16_tensor(values).values);
        }
        c.later.push_back(std::move(later));
    }
    const harness::Outcome outcome = make_subject("vgpu/nofmad")->step(c);
    ASSERT_EQ(outcome.steps.size(), 4U);
    EXPECT_EQ(outcome.steps[3].entries[0].state->step, 7U + 3U);
    EXPECT_EQ(results_text(outcome), results_text(make_subject("oracle")->step(c)));
}

TEST(Subjects, CoefficientsAndLaunchesAreThoseOfTheUpdates) {
    const harness::Outcome outcome = make_subject("vgpu/fmad")->step(mixed_group(13));
    const harness::StepOutcome& step = outcome.steps[0];
    EXPECT_EQ(step.update_launches, 2U);
    ASSERT_EQ(step.entries.size(), 3U);
    ASSERT_TRUE(step.entries[0].coefficients);
    EXPECT_EQ(step.entries[0].coefficients->r, 1.0F / 3.0F);
    EXPECT_EQ(step.entries[0].coefficients->clip, step.clip_multiplier);
    EXPECT_FALSE(step.entries[1].coefficients);
    // Scans: 2 allocations and 2 launches, a readback; updates: 6 allocations and 2 launches.
    EXPECT_EQ(step.device_calls, 2U + 2U + 1U + 6U + 2U);
}

/// Tensors inside larger allocations, at odd places.
TEST(Subjects, TensorsLieAsTheCaseSays) {
    Case c = mixed_group(14);
    const std::string dense = results_text(make_subject("oracle")->step(c));
    c.entries[0].parameters.layout.byte_offset = 20;
    c.entries[0].parameters.storage_bytes += 20 + 7;
    c.entries[2].gradients.layout.byte_offset = 6;
    c.entries[2].gradients.storage_bytes += 6 + 300;
    c.entries[0].state->second_moment.layout.shape = {33};
    const harness::Outcome outcome = make_subject("vgpu/nofmad")->step(c);
    EXPECT_EQ(results_text(outcome), dense);
    EXPECT_TRUE(outcome.steps[0].findings.empty());
}

struct InvalidCase {
    const char* what;
    void (*breaks)(Case& c);
};

constexpr InvalidCase kInvalid[] = {
    {"learning rate", [](Case& c) { c.options.learning_rate = -1.0F; }},
    {"gradient scale", [](Case& c) { c.control.gradient_scale = 0.0F; }},
    {"guard epsilon", [](Case& c) { c.guard.epsilon = 0.0F; }},
    {"dtype of parameters",
     [](Case& c) {
         c.entries[2].parameters.layout.dtype = DType::kF16;
         c.entries[2].parameters.values.clear();
     }},
    {"strides",
     [](Case& c) {
         c.entries[0].gradients.layout.shape = {3, 11};
         c.entries[0].gradients.layout.strides = {1, 3};
         c.entries[0].gradients.values.clear();
     }},
    {"offset",
     [](Case& c) {
         c.entries[0].parameters.layout.byte_offset = 2;
         c.entries[0].parameters.values.clear();
     }},
    {"storage",
     [](Case& c) {
         c.entries[2].gradients.storage_bytes -= 1;
         c.entries[2].gradients.values.clear();
     }},
    {"dimension",
     [](Case& c) {
         c.entries[1].parameters.layout.shape = {std::uint64_t{1} << 32U};
         c.entries[1].parameters.storage_bytes = std::uint64_t{1} << 40U;
     }},
    {"count",
     [](Case& c) {
         c.entries[1].gradients.layout.shape = {std::uint64_t{1} << 30U};
         c.entries[1].gradients.storage_bytes = std::uint64_t{1} << 32U;
     }},
    {"shape of a moment", [](Case& c) { c.entries[0].state->first_moment = testing::tensor({1.0F}); }},
    {"queue", [](Case& c) { c.entries[2].gradients.queue = 1; }},
    {"queue of the greatest number", [](Case& c) { c.entries[2].gradients.queue = UINT32_MAX; }},
    {"maximum without AMSGrad",
     [](Case& c) { c.entries[0].state->max_second_moment = c.entries[0].state->second_moment; }},
    {"step 0", [](Case& c) { c.entries[0].state->step = 0; }},
    {"step overflow", [](Case& c) { c.entries[0].state->step = std::numeric_limits<std::uint64_t>::max(); }},
};

TEST(Subjects, InvalidCasesEndInTheContractsErrorWithoutADeviceCall) {
    for (const char* name : {"vgpu/fmad", "planted/clean-host"}) {
        const auto library = make_subject(name);
        const auto oracle = make_subject("oracle");
        for (const InvalidCase& invalid : kInvalid) {
            Case c = mixed_group(15);
            invalid.breaks(c);
            const harness::Outcome outcome = library->step(c);
            EXPECT_TRUE(outcome.steps.at(0).error) << invalid.what;
            EXPECT_EQ(outcome.steps[0].device_calls, 0U) << invalid.what;
            EXPECT_EQ(outcome.steps[0].update_launches, 0U) << invalid.what;
            EXPECT_TRUE(outcome.steps[0].inputs_changed.empty()) << invalid.what;
            EXPECT_EQ(results_text(outcome), results_text(oracle->step(c))) << invalid.what;
        }
    }
}

TEST(Subjects, WritesToInputsAreFoundAndTold) {
    const harness::Outcome outcome = make_subject("planted/moment-in-place")->step(mixed_group(16));
    EXPECT_EQ(outcome.steps[0].inputs_changed, std::vector<std::string>{"entry 0 first_moment"});
    ASSERT_FALSE(outcome.steps[0].findings.empty());
    EXPECT_NE(outcome.steps[0].findings[0].find("input"), std::string::npos) << outcome.steps[0].findings[0];
}

TEST(Subjects, FaultOfAKernelIsAnOutcome) {
    const harness::Outcome outcome = make_subject("planted/index-past-end")->step(mixed_group(17));
    ASSERT_TRUE(outcome.steps[0].error);
    EXPECT_TRUE(outcome.steps[0].error->kind == ErrorKind::kReadback ||
                outcome.steps[0].error->kind == ErrorKind::kDeviceFailure);
    ASSERT_FALSE(outcome.steps[0].findings.empty());
    EXPECT_NE(outcome.steps[0].findings[0].find("out of bounds"), std::string::npos);
}

TEST(Subjects, KernelsOfAFolderAreASubject) {
    const testing::TemporaryFolder folder;
    folder.write("update.ptx", std::string(kernels::embedded_ptx("update", "nofmad")));
    const std::string name = "ptx:" + std::filesystem::path(folder.path("")).string();
    const auto subject = make_subject(name);
    EXPECT_EQ(subject->name(), name);
    for (const Case& c : groups()) {
        EXPECT_EQ(results_text(subject->step(c)), results_text(make_subject("oracle")->step(c)));
    }
}

TEST(Subjects, FolderWithoutKernelsIsRefused) {
    const testing::TemporaryFolder folder;
    EXPECT_THROW(make_subject("ptx:" + folder.path("")), std::invalid_argument);
}

TEST(Subjects, KernelsThatCannotBeLoadedAreRefusedWithTheReason) {
    const testing::TemporaryFolder folder;
    folder.write("update.ptx", ".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n");
    const std::string name = "ptx:" + folder.path("");
    try {
        make_subject(name);
        FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("subject " + name + ": ")) << error.what();
        EXPECT_NE(std::string(error.what()).find("nonsense"), std::string::npos) << error.what();
    }
}

TEST(Subjects, UnknownNameIsRefusedWithTheKnownOnes) {
    try {
        make_subject("vgpu/none");
        FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("\"vgpu/none\""), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("vgpu/fmad, vgpu/nofmad, oracle, planted/"), std::string::npos);
    }
}

TEST(Subjects, TheLibraryIsNamedAfterTheDeviceThatItRunsOnAndNothingElseIs) {
    EXPECT_EQ(harness::subject_on("vgpu/fmad", "cuda"), "cuda/fmad");
    EXPECT_EQ(harness::subject_on("cuda/nofmad+nvrtc", "vdriver"), "vdriver/nofmad+nvrtc");
    EXPECT_EQ(harness::subject_on("vdriver/fmad", "vgpu"), "vgpu/fmad");
    EXPECT_EQ(harness::subject_on("oracle", "cuda"), "oracle");
    EXPECT_EQ(harness::subject_on("vgpu/fmad", "cuda:0"), "vgpu/fmad");
    EXPECT_EQ(make_subject("vgpu/fmad", {.device = "vdriver"})->name(), "vdriver/fmad");
}

TEST(Subjects, TheVirtualDriverGivesTheVirtualGpusOutcome) {
    const Case c = mixed_group(13);
    EXPECT_EQ(full_text(make_subject("vdriver/nofmad")->step(c)), full_text(make_subject("vgpu/nofmad")->step(c)));
}

TEST(Subjects, EveryListedOneCanBeMadeAndNamesItself) {
    const std::vector<harness::SubjectInfo> all = harness::list_subjects();
    ASSERT_GT(all.size(), 3U);
    EXPECT_EQ(all[0].name, "vgpu/fmad");
    EXPECT_EQ(all[1].name, "vgpu/nofmad");
    EXPECT_EQ(all[2].name, "oracle");
    for (const harness::SubjectInfo& info : all) {
        try {
            EXPECT_EQ(make_subject(info.name)->name(), info.name);
        } catch (const harness::DeviceUnavailable& error) {
            EXPECT_TRUE(info.name.starts_with("cuda/")) << error.what();
        }
        EXPECT_FALSE(info.description.empty());
        EXPECT_EQ(info.planted, info.name.starts_with("planted/") && !info.name.starts_with("planted/clean-"));
    }
}

}  // namespace
}  // namespace gradguard
