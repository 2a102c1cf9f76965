// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/check_points.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace gradguard::testing {
namespace {

using harness::CallRecord;
using harness::DeviceCall;

/// The error that contract section 3 wants.
struct WantedError {
    ErrorKind kind;
    std::optional<std::size_t> entry;
    std::string operand;
};

WantedError error_of_failed(DeviceCall call) {
    if (call == DeviceCall::kReadback || call == DeviceCall::kReadbackWait)
        return {ErrorKind::kReadback, {}, "readback"};
    return {ErrorKind::kDeviceFailure, {}, std::string(to_string(call))};
}

std::string describe(const WantedError& wanted) {
    return std::string(to_string(wanted.kind)) + (wanted.entry ? " entry " + std::to_string(*wanted.entry) : "") +
           " \"" + wanted.operand + "\"";
}

bool is_update(const CallRecord& record) {
    return record.call == DeviceCall::kLaunch && record.detail.starts_with("adamw_");
}

/// Takes down what is wrong at one point.
class Point {
  public:
    Point(std::string name, std::vector<std::string>& problems) : name_(std::move(name)), problems_(problems) {}
    void require(bool holds, const std::string& problem) {
        if (!holds) problems_.push_back(name_ + ": " + problem);
    }

    /// The step must throw this.
    void expect_error(const WantedError& wanted, FaultBench& bench, const Operation& operation) {
        try {
            take_step(bench, operation);
            require(false, "no error, want " + describe(wanted));
        } catch (const Error& error) {
            const ErrorSite& site = error.site();
            require(error.kind() == wanted.kind && site.entry == wanted.entry && site.operand == wanted.operand,
                    "want " + describe(wanted) + ", got " + error.what());
            require(!error.message().empty(), "the error has no message");
        } catch (const std::exception& error) {
            require(false, "want " + describe(wanted) + ", got " + error.what());
        }
    }

    /// The next step must be as if nothing had happened.
    void expect_outcome(const Outcome& wanted, FaultBench& bench, const Operation& operation) {
        try {
            require(take_step(bench, operation) == wanted, "the next step differs from an undisturbed one");
        } catch (const std::exception& error) {
            require(false, std::string("the next step fails: ") + error.what());
        }
    }

    void expect_closed(FaultBench& bench) {
        for (const std::string& problem : bench.close()) require(false, problem);
    }

  private:
    std::string name_;
    std::vector<std::string>& problems_;
};

/// One disturbed step: what holds of every kind of fault. Gives what was committed before it.
void expect_harmless(Point& point, FaultBench& bench, const Operation& operation, const WantedError& wanted) {
    const std::vector<std::byte> before = bench.committed();
    const std::uint64_t allocations = bench.live_allocations();
    bench.log().calls.clear();
    point.expect_error(wanted, bench, operation);
    bench.settle();  // buffers live as long as submitted work needs them
    point.require(bench.committed() == before, "inputs or committed state changed");
    point.require(bench.live_allocations() == allocations, "memory is left allocated");
}

void expect_nothing_submitted_after(Point& point, const std::vector<CallRecord>& calls, std::size_t failed) {
    const auto after = calls.begin() + static_cast<std::ptrdiff_t>(std::min(failed + 1, calls.size()));
    const auto is_launch = [](const CallRecord& record) { return record.call == DeviceCall::kLaunch; };
    point.require(std::none_of(after, calls.end(), is_launch), "a kernel was submitted after the failure");
}

struct CleanRun {
    Outcome outcome;
    std::vector<CallRecord> calls;
};

/// An undisturbed step, its calls held against the contract's accounting.
CleanRun clean_run(const Group& group, const Operation& operation, std::vector<std::string>& problems) {
    Point point("undisturbed", problems);
    FaultBench bench(group);
    CleanRun run;
    run.outcome = take_step(bench, operation);
    run.calls = bench.log().calls;
    CallCounts counted;
    for (const CallRecord& record : run.calls) ++counted[record.call];
    const CallCounts wanted = contract_calls(group, operation);
    for (const auto& [call, times] : wanted) {
        point.require(counted[call] == times, std::to_string(counted[call]) + " calls of " +
                                                  std::string(to_string(call)) + ", the contract counts " +
                                                  std::to_string(times));
    }
    point.require(counted == wanted, "calls that the contract does not count");
    // The machine keeps its own count.
    point.require(bench.launches() == contract_launches(group, operation), "the machine counts other launches");
    point.expect_closed(bench);
    return run;
}

void fail_call_number(std::size_t k, const CleanRun& clean, const Group& group, const Operation& operation,
                      std::optional<harness::Fate> fate, std::vector<std::string>& problems) {
    const DeviceCall call = clean.calls[k].call;
    std::string name = "call " + std::to_string(k) + " (" + std::string(to_string(call)) + ")";
    name += fate ? ", device lost, work under way " + std::string(to_string(*fate)) : " fails";
    Point point(name, problems);
    FaultBench bench(group, {.fate = fate});
    if (fate) {
        bench.plan().arm(k, [&bench](const CallRecord&) { bench.losable().lose(); });
    } else {
        bench.plan().arm(k);
    }
    expect_harmless(point, bench, operation, error_of_failed(call));
    const std::vector<CallRecord>& calls = bench.log().calls;
    point.require(k < calls.size() && calls[k].call == call, "the step took another way before the fault");
    expect_nothing_submitted_after(point, calls, k);
    if (fate) {
        // Lost is lost: the next step fails at its first call.
        expect_harmless(point, bench, operation, error_of_failed(clean.calls.front().call));
        FaultBench replacement(group);
        point.expect_outcome(clean.outcome, replacement, operation);
        point.expect_closed(replacement);
    } else {
        point.expect_outcome(clean.outcome, bench, operation);
    }
    point.expect_closed(bench);
}

}  // namespace

Enumeration fail_every_call(const Group& group, const Operation& operation, std::optional<harness::Fate> fate) {
    Enumeration result;
    const CleanRun clean = clean_run(group, operation, result.problems);
    for (std::size_t k = 0; k < clean.calls.size(); ++k) {
        fail_call_number(k, clean, group, operation, fate, result.problems);
    }
    result.points = clean.calls.size();
    return result;
}

Enumeration damage_every_summary(const Group& group, const Operation& operation) {
    Enumeration result;
    const CleanRun clean = clean_run(group, operation, result.problems);
    for (const Damage& damage : damages(group)) {
        Point point(damage.name, result.problems);
        bool damaged = false;
        FaultBench bench(group, {.tamper = [&](std::vector<std::vector<std::byte>>& payload) {
                             if (!std::exchange(damaged, true)) damage.tamper(payload);
                         }});
        expect_harmless(point, bench, operation, {ErrorKind::kInvalidSummary, damage.entry, damage.operand});
        point.require(damaged, "nothing was read back");
        const std::vector<CallRecord>& calls = bench.log().calls;
        point.require(std::ranges::none_of(calls, is_update), "an update was submitted");
        point.expect_outcome(clean.outcome, bench, operation);
        point.expect_closed(bench);
        ++result.points;
    }
    return result;
}

}  // namespace gradguard::testing
