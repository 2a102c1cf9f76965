// SPDX-License-Identifier: Apache-2.0
// The enumeration can fail: operations with planted faults, each of which it must report.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reference/contract/error.h"
#include "tests/faults/check_points.h"

namespace gradguard::testing {
namespace {

using harness::Fate;
using Updates = std::vector<AdamWUpdate>;

/// guarded_adamw_step, which does `wrong` when it fails.
Operation guarded_but(std::function<void(FaultBench&, const Error&)> wrong) {
    Operation operation = operation_named("guarded_adamw_step");
    operation.run = [right = operation.run, wrong](FaultBench& bench, std::string& said) {
        try {
            return right(bench, said);
        } catch (const Error& error) {
            wrong(bench, error);
            throw;
        }
    };
    return operation;
}

bool reports(const Enumeration& found, const std::string& problem) {
    return std::ranges::any_of(found.problems,
                               [&](const std::string& line) { return line.find(problem) != std::string::npos; });
}

void expect_reported(const Operation& operation, const std::string& problem, std::optional<Fate> fate = std::nullopt) {
    const Enumeration found = fail_every_call(group_named("one_element"), operation, fate);
    EXPECT_TRUE(reports(found, problem)) << problem;
}

/// A call that the armed fault does not reach any more, whether it works or not.
void try_to(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error&) {
        // A device that is lost.
    }
}

TEST(Checker, AnUnchangedOperationPasses) {
    const Operation same = guarded_but([](FaultBench&, const Error&) {});
    EXPECT_EQ(fail_every_call(group_named("one_element"), same, std::nullopt).problems, std::vector<std::string>{});
    EXPECT_EQ(fail_every_call(group_named("one_element"), same, Fate::kHalfDone).problems, std::vector<std::string>{});
}

TEST(Checker, ALeakIsReported) {
    std::vector<Buffer> kept;
    const Operation leaky = guarded_but([&](FaultBench& bench, const Error&) {
        try_to([&] { kept.push_back(bench.device().allocate(64, *bench.queue())); });
    });
    expect_reported(leaky, "memory is left allocated");
    expect_reported(leaky, "allocations are left");
}

TEST(Checker, AChangedParameterIsReported) {
    const Operation writes = guarded_but([](FaultBench& bench, const Error&) {
        try_to([&] {
            const Tensor& parameters = bench.entries()[0].parameters;
            const std::byte one{1};
            bench.queue()->copy_to_device({parameters.storage, parameters.bytes() - 1, 1}, {&one, 1});
        });
    });
    expect_reported(writes, "inputs or committed state changed");
}

TEST(Checker, AStepCountThatAdvancedIsReported) {
    Operation commits = guarded_but([](FaultBench& bench, const Error&) {
        if (auto& state = bench.entries()[1].state) ++state->step;
    });
    const Enumeration found = fail_every_call(group_named("later"), commits, Fate::kDropped);
    EXPECT_TRUE(reports(found, "inputs or committed state changed"));
}

TEST(Checker, ASwallowedErrorIsReported) {
    Operation quiet = operation_named("guarded_adamw_step");
    quiet.run = [right = quiet.run](FaultBench& bench, std::string& said) {
        try {
            return right(bench, said);
        } catch (const Error&) {
            return Updates{};
        }
    };
    expect_reported(quiet, "no error, want DeviceFailure \"allocate\"");
    expect_reported(quiet, "no error, want Readback \"readback\"");
    expect_reported(quiet, "no error, want DeviceFailure \"launch\"", Fate::kDone);
}

TEST(Checker, AnErrorOfAnotherKindOrOperandIsReported) {
    for (const ErrorKind kind : {ErrorKind::kReadback, ErrorKind::kDeviceFailure}) {
        Operation renames = operation_named("guarded_adamw_step");
        renames.run = [right = renames.run, kind](FaultBench& bench, std::string& said) {
            try {
                return right(bench, said);
            } catch (const Error&) {
                throw Error(kind, {.operand = "readback"}, "renamed");
            }
        };
        expect_reported(renames, "got " + std::string(to_string(kind)) + ": readback: renamed");
    }
}

TEST(Checker, AKernelSubmittedAfterTheFailureIsReported) {
    const Operation goes_on = guarded_but([](FaultBench& bench, const Error&) {
        const AdamWEntry& entry = bench.entries()[0];
        try_to([&] { adamw_step(entry.parameters, entry.gradients, entry.state); });
    });
    expect_reported(goes_on, "a kernel was submitted after the failure");
    EXPECT_TRUE(reports(damage_every_summary(group_named("one_element"), goes_on), "an update was submitted"));
}

TEST(Checker, ACallThatTheContractDoesNotCountIsReported) {
    Operation more = operation_named("guarded_adamw_step");
    more.run = [right = more.run](FaultBench& bench, std::string& said) {
        bench.queue()->synchronize();
        return right(bench, said);
    };
    expect_reported(more, "3 calls of synchronize, the contract counts 2");
}

TEST(Checker, ANextStepWithOtherBitsIsReported) {
    bool failed = false;
    Operation remembers = guarded_but([&](FaultBench&, const Error&) { failed = true; });
    remembers.run = [right = remembers.run, &failed](FaultBench& bench, std::string& said) {
        Updates updates = right(bench, said);
        if (std::exchange(failed, false)) said += "not as before";
        return updates;
    };
    expect_reported(remembers, "the next step differs from an undisturbed one");
}

TEST(Checker, ASummaryThatIsBelievedIsReported) {
    Operation believes = operation_named("gradient_stats_sync");
    believes.run = [right = believes.run](FaultBench& bench, std::string& said) {
        try {
            return right(bench, said);
        } catch (const Error&) {
            return Updates{};
        }
    };
    const Enumeration found = damage_every_summary(group_named("one_element"), believes);
    const auto missed = [](const std::string& line) { return line.find(": no error") != std::string::npos; };
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(found.problems, missed)),
              damages(group_named("one_element")).size());
}

}  // namespace
}  // namespace gradguard::testing
