// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/observers/program.h"

/// Planted bugs, compiled from CUDA C++ by nvcc, that observers must find, and clean twins that they must pass.
namespace gradguard::observers::test {
namespace {

using vgpu::FindingKind;
using vgpu::Space;

constexpr std::uint64_t kSeeds = 20;

/// A kernel NAME_bug (or the like) and what is expected of it.
struct Planted {
    std::string kernel;
    std::vector<FindingKind> kinds;  ///< Any of these: a schedule may turn a mismatch into a deadlock.
    std::string mark;                ///< Of the line in the .cu; empty: not said.
    /// Thread that is reported, with seed 0; UINT32_MAX: not said.
    std::uint32_t thread = UINT32_MAX;
};

Setup setup_of(const std::string& program) {
    Setup setup;
    setup.program = program;
    if (program == "shared_races") {
        setup.words_a = 1024;
        setup.n = 1024;
    } else if (program == "global_races") {
        setup.grid = {8, 1, 1};
        setup.block = {64, 1, 1};
        setup.words_a = setup.words_b = 4096;
        setup.words_c = 128;
    } else if (program == "init") {
        setup.block = {64, 1, 1};
        setup.words_a = 64;
        setup.words_b = 1024;
        setup.clear_b = false;
        setup.n = 50;
    } else if (program == "local" || program == "registers" || program == "undefined") {
        setup.block = {64, 1, 1};
        setup.words_a = setup.words_b = 64;
        setup.n = 50;
    } else if (program == "barriers") {
        setup.block = {128, 1, 1};
        setup.words_a = setup.words_b = 128;
    } else if (program == "bounds") {
        setup.grid = {2, 1, 1};
        setup.block = {64, 1, 1};
        setup.words_a = setup.words_b = setup.words_c = 128;
    } else {
        setup.grid = {2, 1, 1};
        setup.block = {64, 1, 1};
        setup.words_a = setup.words_b = 128;
        setup.a_behind_b = true;
        setup.n = 7;
    }
    return setup;
}

void expect_found(const std::string& program, const Planted& planted) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        Setup setup = setup_of(program);
        setup.free_c = planted.kernel == "freed_bug";
        const Run run = run_program(setup, planted.kernel, seed);
        const auto lines = planted.mark.empty() ? std::vector<std::uint32_t>{} : marked_lines(program, planted.mark);
        ASSERT_TRUE(planted.mark.empty() || !lines.empty()) << planted.mark;
        const auto hit = std::find_if(run.findings.begin(), run.findings.end(), [&](const vgpu::Finding& finding) {
            if (std::count(planted.kinds.begin(), planted.kinds.end(), finding.kind) == 0 ||
                finding.place.kernel != planted.kernel)
                return false;
            const auto on_line = [&](const vgpu::Place& place) {
                const std::string source = source_of(program);
                const std::uint32_t line = place.ptx_file == source ? place.ptx_line : place.source_line;
                return (place.ptx_file == source || place.source_file == source) &&
                       std::find(lines.begin(), lines.end(), line) != lines.end();
            };
            return lines.empty() || on_line(finding.place) || (finding.other && on_line(*finding.other));
        });
        ASSERT_NE(hit, run.findings.end()) << planted.kernel << " seed " << seed << "\n" << run.describe();
        EXPECT_NE(hit->place.ptx_line, 0U);
        if (seed == 0 && planted.thread != UINT32_MAX) {
            EXPECT_EQ(hit->thread.x, planted.thread) << run.describe();
        }
    }
}

void expect_clean(const std::string& program, const std::string& kernel) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Run run = run_program(setup_of(program), kernel, seed);
        ASSERT_TRUE(run.findings.empty()) << kernel << " seed " << seed << "\n" << run.describe();
    }
}

/// Loads from local memory that the run has seen.
std::uint64_t local_reads_of(const Run& run) {
    for (const Checked& checked : run.checked) {
        for (const auto& [what, count] : checked.counts) {
            if (checked.observer == "init" && what == "local reads") return count;
        }
    }
    return 0;
}

TEST(SharedRacePrograms, EachDroppedBarrierOfTheTreeIsFound) {
    for (int level = 0; level < 8; ++level) {
        // The barrier before offset 16 and those after it order lanes of one warp.
        const FindingKind kind = level < 3 ? FindingKind::Race : FindingKind::WarpRace;
        expect_found("shared_races", {"tree_" + std::to_string(level) + "_bug", {kind}, "tree"});
    }
}

TEST(SharedRacePrograms, PlantedBugsAreFound) {
    expect_found("shared_races", {"rounds_bug", {FindingKind::Race}, "rounds_bug"});
    expect_found("shared_races", {"warp_tail_bug", {FindingKind::WarpRace}, "warp_tail_bug"});
    expect_found("shared_races", {"warp_tail_volatile_bug", {FindingKind::WarpRace}, "warp_tail_bug"});
    expect_found("shared_races", {"histogram_bug", {FindingKind::Race}, "histogram_bug"});
    expect_found("shared_races", {"bytes_bug", {FindingKind::WriteConflict}, "bytes_bug"});
    expect_found("shared_races", {"vectors_bug", {FindingKind::WarpRace}, "vectors_bug"});
    expect_found("shared_races", {"pairs_bug", {FindingKind::WriteConflict}, "pairs_bug"});
    expect_found("shared_races", {"hand_out_bug", {FindingKind::Race}, "hand_out_bug", 0});
    expect_found("shared_races", {"shared_flag_bug", {FindingKind::Race}, "shared_flag_bug", 0});
    expect_found("shared_races", {"producer_bug", {FindingKind::Race}, "producer_bug"});
}

TEST(SharedRacePrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"tree_clean", "rounds_clean", "warp_tail_clean", "histogram_clean", "bytes_clean", "vectors_clean",
          "pairs_clean", "hand_out_clean", "shared_flag_clean", "producer_clean"}) {
        expect_clean("shared_races", kernel);
    }
}

TEST(GlobalRacePrograms, PlantedBugsAreFound) {
    expect_found("global_races", {"last_block_bug", {FindingKind::Race}, "last_block"});
    expect_found("global_races", {"last_block_narrow_bug", {FindingKind::Race}, "last_block"});
    expect_found("global_races", {"last_block_all_bug", {FindingKind::Race}, "last_block_all"});
    expect_found("global_races", {"flag_producer_bug", {FindingKind::Race}, "flag", 0});
    expect_found("global_races", {"flag_consumer_bug", {FindingKind::Race}, "flag", 0});
    expect_found("global_races", {"histogram_bug", {FindingKind::Race}, "histogram_bug"});
    expect_found("global_races", {"stencil_bug", {FindingKind::Race}, "stencil_bug"});
    expect_found("global_races", {"parts_bug", {FindingKind::Race}, "parts_bug"});
    expect_found("global_races", {"grid_barrier_bug", {FindingKind::Race}, "grid_barrier_bug"});
    expect_found("global_races", {"scratch_bug", {FindingKind::Race}, "scratch_bug"});
    expect_found("global_races", {"halves_bug", {FindingKind::Race}, "halves_bug"});
    expect_found("global_races", {"found_bug", {FindingKind::Race}, "found_bug"});
    expect_found("global_races", {"lock_bug", {FindingKind::Race}, "lock_bug", 0});
    expect_found("global_races", {"ticket_first_bug", {FindingKind::Race}, "ticket"});
    expect_found("global_races", {"ticket_middle_bug", {FindingKind::Race}, "ticket"});
    expect_found("global_races", {"ticket_lane_bug", {FindingKind::Race, FindingKind::WarpRace}, "ticket"});
}

TEST(GlobalRacePrograms, CleanTwinsAreClean) {
    for (const char* kernel : {"last_block_clean", "last_block_all_clean", "flag_clean", "histogram_clean",
                               "stencil_clean", "parts_clean", "grid_barrier_clean", "scratch_clean", "halves_clean",
                               "found_clean", "lock_clean", "ticket_clean", "ticket_other_clean"}) {
        expect_clean("global_races", kernel);
    }
}

TEST(InitPrograms, PlantedBugsAreFound) {
    expect_found("init", {"tail_bug", {FindingKind::UninitializedRead}, "tail_bug", 18});
    expect_found("init", {"scratch_bug", {FindingKind::UninitializedRead}, "scratch_bug", 50});
    expect_found("init", {"accumulate_bug", {FindingKind::UninitializedRead}, "accumulate_bug", 0});
    expect_found("init", {"bins_bug", {FindingKind::UninitializedRead}, "bins_bug"});
    expect_found("init", {"vectors_bug", {FindingKind::UninitializedRead}, "vectors_bug"});
    expect_found("init", {"comb_bug", {FindingKind::UninitializedRead}, "comb_bug"});
}

TEST(InitPrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"tail_clean", "scratch_clean", "accumulate_clean", "bins_clean", "vectors_clean", "comb_clean"}) {
        expect_clean("init", kernel);
    }
}

TEST(LocalPrograms, PlantedBugsAreFound) {
    expect_found("local", {"window_bug", {FindingKind::UninitializedRead}, "window_bug", 6});
    expect_found("local", {"record_bug", {FindingKind::UninitializedRead}, "record_bug", 0});
    expect_found("local", {"bins_bug", {FindingKind::UninitializedRead}, "bins_bug", 0});
    expect_found("local", {"some_bug", {FindingKind::UninitializedRead}, "some_bug", 40});
    expect_found("local", {"end_bug", {FindingKind::OutOfBounds}, "end_bug", 8});
    expect_found("local", {"pointer_bug", {FindingKind::OutOfBounds}, "pointer_bug", 0});
    expect_found("local", {"pair_bug", {FindingKind::Misaligned}, "pair_bug", 1});
    expect_found("local", {"member_bug", {FindingKind::UninitializedRead}, "member_bug", 0});
    expect_found("local", {"fields_bug", {FindingKind::UninitializedRead}, "fields_bug", 0});
}

TEST(LocalPrograms, TheFindingIsAtTheReadAndNamesTheUse) {
    const auto run = run_program(setup_of("local"), "window_bug", 0, "init");
    ASSERT_EQ(run.findings.size(), 1U) << run.describe();
    const vgpu::Finding& finding = run.findings[0];
    EXPECT_EQ(finding.space, Space::Local);
    EXPECT_EQ(finding.place.instruction.substr(0, 8), "ld.local");
    EXPECT_EQ(finding.address, 24U);  // the first word that is not filled
    ASSERT_TRUE(finding.other.has_value());
    EXPECT_EQ(finding.other->instruction.substr(0, 9), "st.global");
    EXPECT_EQ(finding.detail.substr(0, 32), "the value stored is undefined, %");
    EXPECT_EQ(finding.count, 16U);  // threads with a number that is 6 or 7 of 8
}

TEST(LocalPrograms, WhatIsCopiedAndNotUsedIsNoFinding) {
    for (const char* kernel : {"padding_clean", "unset_clean", "member_clean", "fields_clean"}) {
        expect_clean("local", kernel);
        EXPECT_GT(local_reads_of(run_program(setup_of("local"), kernel, 0)), 0U) << kernel;
    }
}

TEST(LocalPrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"window_clean", "record_clean", "bins_clean", "some_clean", "end_clean", "pointer_clean", "pair_clean"}) {
        expect_clean("local", kernel);
    }
}

TEST(RegisterPrograms, WhatNvccLeavesUndefinedIsFound) {
    const std::vector<FindingKind> kinds{FindingKind::UninitializedRegister};
    expect_found("registers", {"sum_bug", kinds, "sum_bug", 0});
    expect_found("registers", {"best_bug", kinds, "best_bug", 44});
    expect_found("registers", {"late_bug", kinds, "late_bug", 61});
    expect_found("registers", {"place_bug", kinds, "place_bug", 50});
    expect_found("registers", {"choice_bug", kinds, "choice_bug", 44});
    expect_found("registers", {"total_bug", kinds, "total_bug", 44});
}

TEST(RegisterPrograms, CleanTwinsOfNvccAreClean) {
    for (const char* kernel : {"sum_clean", "best_clean", "late_clean", "place_clean", "choice_clean", "total_clean"}) {
        expect_clean("registers", kernel);
    }
}

TEST(RegisterPrograms, EachUseOfAnUndefinedRegisterIsFound) {
    const std::vector<FindingKind> kinds{FindingKind::UninitializedRegister};
    expect_found("undefined", {"stored_bug", kinds, "stored_bug", 0});
    expect_found("undefined", {"one_side_bug", kinds, "one_side_bug", 40});
    expect_found("undefined", {"guarded_load_bug", kinds, "guarded_load_bug", 40});
    expect_found("undefined", {"guard_bug", kinds, "guard_bug", 0});
    expect_found("undefined", {"condition_bug", kinds, "condition_bug", 0});
    expect_found("undefined", {"shuffled_bug", kinds, "shuffled_bug", 32});
    expect_found("undefined", {"voted_bug", kinds, "voted_bug", 0});
    expect_found("undefined", {"spilled_bug", kinds, "spilled_bug", 0});
    expect_found("undefined", {"handed_over_bug", kinds, "handed_over_bug", 40});
    expect_found("undefined", {"argument_bug", kinds, "argument_bug", 0});
    expect_found("undefined", {"counted_bug", kinds, "counted_bug", 0});
    expect_found("undefined", {"base_bug", kinds, "base_bug", 0});
    expect_found("undefined", {"barrier_bug", kinds, "barrier_bug", 0});
    expect_found("undefined", {"carry_bug", kinds, "carry_bug", 0});
    expect_found("undefined", {"product_bug", kinds, "product_bug", 0});
}

TEST(RegisterPrograms, CleanTwinsAreClean) {
    for (const char* kernel : {"stored_clean", "one_side_clean", "guarded_load_clean", "guard_clean", "condition_clean",
                               "shuffled_clean", "voted_clean", "spilled_clean", "handed_over_clean", "argument_clean",
                               "counted_clean", "base_clean", "barrier_clean", "carry_clean", "product_clean"}) {
        expect_clean("undefined", kernel);
    }
}

TEST(RegisterPrograms, WhatCompilersDoWithUndefinedRegistersIsClean) {
    for (const char* kernel :
         {"unused_arm_clean", "computed_and_dropped_clean", "unused_half_clean", "short_circuit_clean",
          "unused_argument_clean", "staged_clean", "first_round_clean", "overwritten_clean"}) {
        expect_clean("undefined", kernel);
    }
}

TEST(RegisterPrograms, TheFindingNamesTheRegisterThatNobodyWrote) {
    const auto run = run_program(setup_of("undefined"), "guarded_load_bug", 0);
    ASSERT_EQ(run.findings.size(), 1U) << run.describe();
    EXPECT_EQ(run.findings[0].register_name, "%r1");
    EXPECT_EQ(run.findings[0].detail, "the value stored is undefined: nobody wrote %r1, from which %r2 comes");
    EXPECT_EQ(run.findings[0].count, 24U);  // threads from 40 on
}

TEST(Programs, CodeInlinedFromAHeaderIsFoundWhereItWasCalled) {
    const auto run = run_program(setup_of("init"), "bins_bug", 0);
    ASSERT_EQ(run.findings.size(), 1U) << run.describe();
    const vgpu::Place& place = run.findings[0].place;
    EXPECT_EQ(place.source_file, "init.cu");
    EXPECT_EQ(place.source_line, marked_lines("init", "bins_bug").at(0));
    EXPECT_EQ(place.inlined_file, "device_atomic_functions.hpp");
    EXPECT_NE(place.inlined_line, 0U);
}

TEST(BarrierPrograms, PlantedBugsAreFound) {
    expect_found("barriers", {"sides_bug", {FindingKind::DivergentBarrier}, "sides_bug"});
    expect_found("barriers", {"warps_bug", {FindingKind::BarrierMismatch}, "warps_bug"});
    expect_found("barriers", {"some_bug", {FindingKind::Deadlock}, "some_bug"});
    expect_found("barriers", {"rounds_bug", {FindingKind::Deadlock}, ""});
    expect_found("barriers", {"counts_bug", {FindingKind::BarrierMismatch, FindingKind::Deadlock}, "counts_bug"});
    expect_found("barriers", {"too_many_bug", {FindingKind::Deadlock}, "too_many_bug", 0});
}

TEST(BarrierPrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"sides_clean", "warps_clean", "some_clean", "rounds_clean", "counts_clean", "too_many_clean"}) {
        expect_clean("barriers", kernel);
    }
}

TEST(BoundsPrograms, PlantedBugsAreFound) {
    expect_found("bounds", {"past_end_bug", {FindingKind::OutOfBounds}, "past_end_bug", 63});
    expect_found("bounds", {"before_begin_bug", {FindingKind::OutOfBounds}, "before_begin_bug", 0});
    expect_found("bounds", {"misaligned_bug", {FindingKind::Misaligned}, "misaligned_bug", 0});
    expect_found("bounds", {"tail_bug", {FindingKind::OutOfBounds}, "tail_bug", 43});
    expect_found("bounds", {"shared_end_bug", {FindingKind::OutOfBounds}, "shared_end_bug", 63});
    expect_found("bounds", {"freed_bug", {FindingKind::UseAfterFree}, "freed_bug"});
    expect_found("bounds", {"null_bug", {FindingKind::NoSuchAllocation}, "null_bug"});
}

TEST(BoundsPrograms, CleanTwinsAreClean) {
    for (const char* kernel : {"past_end_clean", "before_begin_clean", "misaligned_clean", "tail_clean",
                               "shared_end_clean", "freed_clean", "null_clean"}) {
        expect_clean("bounds", kernel);
    }
}

TEST(InputPrograms, PlantedBugsAreFound) {
    expect_found("inputs", {"past_output_bug", {FindingKind::WriteToInput}, "past_output_bug", 63});
    expect_found("inputs", {"in_place_bug", {FindingKind::WriteToInput}, "in_place_bug", 0});
    expect_found("inputs", {"count_bug", {FindingKind::WriteToInput}, "count_bug", 0});
    expect_found("inputs", {"vector_bug", {FindingKind::WriteToInput}, "vector_bug", 32});
    expect_found("inputs", {"byte_bug", {FindingKind::WriteToInput}, "byte_bug", 63});
    expect_found("inputs", {"generic_bug", {FindingKind::WriteToInput}, "generic_bug", 13});
}

TEST(InputPrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"past_output_clean", "in_place_clean", "count_clean", "vector_clean", "byte_clean", "generic_clean"}) {
        expect_clean("inputs", kernel);
    }
}

TEST(Programs, EveryObserverHadSomethingToCheck) {
    std::vector<Checked> total;
    for (const auto& [program, kernel] : {std::pair{"shared_races", "histogram_clean"},
                                          {"global_races", "last_block_clean"},
                                          {"inputs", "in_place_clean"}}) {
        add_checked(total, run_program(setup_of(program), kernel, 1).checked);
    }
    EXPECT_TRUE(checked_nothing(total).empty()) << testing::PrintToString(checked_nothing(total));
}

TEST(Programs, TheSameSeedGivesTheSameFindings) {
    for (const std::uint64_t seed : {0U, 7U}) {
        const std::string first = run_program(setup_of("global_races"), "grid_barrier_bug", seed).describe();
        EXPECT_EQ(run_program(setup_of("global_races"), "grid_barrier_bug", seed).describe(), first);
        EXPECT_FALSE(first.empty());
    }
}

}  // namespace
}  // namespace gradguard::observers::test
