// SPDX-License-Identifier: Apache-2.0
// The host runs out of memory at every allocation of a step.
#include <gtest/gtest.h>

#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/decision.h"
#include "reference/contract/error.h"
#include "tests/faults/allocation_points.h"
#include "tests/faults/host_memory.h"

namespace gradguard::testing {
namespace {

void expect_harmless(const AllocationPoints& found) {
    EXPECT_GT(found.thrown, 0U);
    for (const std::string& problem : found.problems) ADD_FAILURE() << problem;
}

// Plain calls of operator new: the compiler may leave out what an expression allocates and frees.

TEST(HostMemory, TheChosenAllocationFailsAndNoOther) {
    const std::uint64_t live = host_memory::live();
    bool failed = false;
    host_memory::fail_at(1);
    void* const first = ::operator new(4);
    try {
        ::operator delete(::operator new(4));
    } catch (const std::bad_alloc&) {
        failed = true;
    }
    void* const third = ::operator new(4);
    const bool reached = host_memory::stop_failing();
    EXPECT_TRUE(failed);
    EXPECT_TRUE(reached);
    EXPECT_EQ(host_memory::live(), live + 2);
    ::operator delete(first);
    ::operator delete(third);
    EXPECT_EQ(host_memory::live(), live);
}

TEST(HostMemory, TheFormsOfNewAreAllCountedAndFreed) {
    constexpr std::align_val_t kWide{64};
    const std::uint64_t live = host_memory::live(), made = host_memory::allocations();
    ::operator delete(::operator new(4));
    ::operator delete[](::operator new[](4));
    ::operator delete(::operator new(4, kWide), kWide);
    ::operator delete[](::operator new[](4, kWide), kWide);
    ::operator delete(::operator new(4, std::nothrow));
    EXPECT_EQ(host_memory::live(), live);
    EXPECT_EQ(host_memory::allocations(), made + 5);
}

class EveryAllocation : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EveryAllocation, OfAStepThatFailsHarmsNothing) {
    const Group& group = group_named(std::get<0>(GetParam()));
    expect_harmless(fail_every_allocation(group, operation_named(std::get<1>(GetParam())), Bench::kWarm));
}

INSTANTIATE_TEST_SUITE_P(HostMemory, EveryAllocation,
                         ::testing::Combine(::testing::Values("small", "bad_error"),
                                            ::testing::ValuesIn(operation_names())),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

/// What an action says: its error, or nothing.
std::string said(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(HostMemory, EveryAllocationOfAValidationErrorThatFailsHarmsNothing) {
    FaultBench bench(group_named("later_amsgrad"), {.bare = true});
    const Group& group = bench.group();
    const auto changed = [&](const std::function<void(AdamWEntry&)>& change) {
        std::vector<AdamWEntry> entries = bench.entries();
        change(entries[3]);
        change(entries[4]);
        return entries;
    };
    const std::pair<const char*, std::function<void(AdamWEntry&)>> changes[] = {
        {"InvalidTensor", [](AdamWEntry& entry) { entry.parameters.layout.dtype = DType::kF16; }},
        {"InvalidTensor", [](AdamWEntry& entry) { entry.gradients.layout.strides = {2}; }},
        {"InvalidTensor", [](AdamWEntry& entry) { entry.gradients.layout.byte_offset = 1; }},
        {"InvalidTensor", [](AdamWEntry& entry) { entry.gradients.layout.shape = {std::uint64_t{1} << 40U}; }},
        {"ShapeMismatch",
         [](AdamWEntry& entry) {
             entry.gradients = Tensor::over(entry.gradients.queue, DType::kF16, {1}, entry.gradients.storage);
         }},
        {"DifferentExecutionQueue", [](AdamWEntry& entry) { entry.gradients.queue = nullptr; }},
        {"InvalidState",
         [](AdamWEntry& entry) {
             if (entry.state) entry.state->max_second_moment.reset();
         }},
        {"InvalidState",
         [](AdamWEntry& entry) {
             if (entry.state) entry.state->step = 0;
         }},
        {"StepOverflow", [](AdamWEntry& entry) {
             if (entry.state) entry.state->step = std::numeric_limits<std::uint64_t>::max();
         }}};
    for (const auto& [kind, change] : changes) {
        const std::vector<AdamWEntry> entries = changed(change);
        const auto step = [&] {
            return said([&] { guarded_adamw_step(entries, group.options, group.control, group.guard); });
        };
        ASSERT_EQ(step().substr(0, std::string(kind).size()), kind);
        expect_harmless(fail_every_allocation(step));
    }
}

TEST(HostMemory, EveryAllocationOfADecisionThatFailsHarmsNothing) {
    GradientStats bad;
    bad.all_finite = false;
    bad.total_norm = std::numeric_limits<double>::infinity();
    const auto nonfinite = [&] { return said([&] { decide(bad, {.nonfinite = NonFinitePolicy::kError}); }); };
    ASSERT_EQ(nonfinite().substr(0, 18), "NonFiniteGradients");
    expect_harmless(fail_every_allocation(nonfinite));
    const auto invalid = [] { return said([] { decide({}, {.max_norm = -1.0F}); }); };
    ASSERT_EQ(invalid().substr(0, 13), "InvalidOption");
    expect_harmless(fail_every_allocation(invalid));
}

// The enumeration can fail: here are steps with planted faults.

TEST(HostMemory, ALeakOnFailureIsReported) {
    Operation leaky = operation_named("gradient_stats_sync");
    std::vector<void*> lost;
    lost.reserve(10000);
    leaky.run = [right = leaky.run, &lost](FaultBench& bench, std::string& text) {
        try {
            return right(bench, text);
        } catch (const std::bad_alloc&) {
            lost.push_back(::operator new(4));
            throw;
        }
    };
    const AllocationPoints found = fail_every_allocation(group_named("one_element"), leaky, Bench::kWarm);
    ASSERT_FALSE(found.problems.empty());
    EXPECT_NE(found.problems.front().find("1 host allocations are left"), std::string::npos) << found.problems.front();
    for (void* memory : lost) ::operator delete(memory);
}

TEST(HostMemory, AnOperationThatCarriesOnWithoutMemoryIsReported) {
    Operation quiet = operation_named("gradient_stats_sync");
    quiet.run = [right = quiet.run](FaultBench& bench, std::string& text) {
        try {
            return right(bench, text);
        } catch (const std::bad_alloc&) {
            return std::vector<AdamWUpdate>{};
        }
    };
    const AllocationPoints found = fail_every_allocation(group_named("one_element"), quiet, Bench::kWarm);
    ASSERT_FALSE(found.problems.empty());
    EXPECT_NE(found.problems.front().find("another outcome"), std::string::npos) << found.problems.front();
}

}  // namespace
}  // namespace gradguard::testing
