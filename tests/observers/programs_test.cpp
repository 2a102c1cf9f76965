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
                return place.source_file == program + ".cu" &&
                       std::find(lines.begin(), lines.end(), place.source_line) != lines.end();
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
}

TEST(GlobalRacePrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"last_block_clean", "last_block_all_clean", "flag_clean", "histogram_clean", "stencil_clean", "parts_clean",
          "grid_barrier_clean", "scratch_clean", "halves_clean", "found_clean", "lock_clean"}) {
        expect_clean("global_races", kernel);
    }
}

TEST(InitPrograms, PlantedBugsAreFound) {
    expect_found("init", {"tail_bug", {FindingKind::UninitializedRead}, "tail_bug", 18});
    expect_found("init", {"scratch_bug", {FindingKind::UninitializedRead}, "scratch_bug", 50});
    expect_found("init", {"accumulate_bug", {FindingKind::UninitializedRead}, "accumulate_bug", 0});
    expect_found("init", {"bins_bug", {FindingKind::UninitializedRead}, ""});
    expect_found("init", {"vectors_bug", {FindingKind::UninitializedRead}, "vectors_bug"});
    expect_found("init", {"comb_bug", {FindingKind::UninitializedRead}, "comb_bug"});
}

TEST(InitPrograms, CleanTwinsAreClean) {
    for (const char* kernel :
         {"tail_clean", "scratch_clean", "accumulate_clean", "bins_clean", "vectors_clean", "comb_clean"}) {
        expect_clean("init", kernel);
    }
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
    expect_found("inputs", {"count_bug", {FindingKind::WriteToInput}, "", 0});
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
