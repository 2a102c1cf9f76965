// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/allocation_points.h"

#include <new>
#include <optional>

#include "reference/contract/error.h"
#include "tests/faults/host_memory.h"

namespace gradguard::testing {
namespace {

/// How one step ended.
struct Ending {
    enum class Kind : std::uint8_t { kDone, kBadAlloc, kError } kind = Kind::kDone;
    bool reached = false;  ///< An allocation did fail.
    bool as_wanted = true;
    std::string text = {};
};

Ending run_with_failure(std::uint64_t k, FaultBench& bench, const Operation& operation, const Outcome& clean) {
    Ending ending;
    Outcome outcome;
    host_memory::fail_at(k);
    try {
        outcome = take_step(bench, operation);
        ending.reached = host_memory::stop_failing();
        ending.as_wanted = outcome == clean;
    } catch (const std::bad_alloc&) {
        ending.reached = host_memory::stop_failing();
        ending.kind = Ending::Kind::kBadAlloc;
    } catch (const Error& error) {
        ending.reached = host_memory::stop_failing();
        ending.kind = Ending::Kind::kError;
        const bool right_kind = error.kind() == ErrorKind::kDeviceFailure || error.kind() == ErrorKind::kReadback;
        ending.text = error.what();
        const bool names_it = ending.text.find("bad_alloc") != std::string::npos ||
                              ending.text.find("the host has no") != std::string::npos;
        ending.as_wanted = right_kind && names_it;
    }
    return ending;
}

class Enumerator {
  public:
    Enumerator(const Group& group, const Operation& operation, Bench kind)
        : group_(group), operation_(operation), kind_(kind) {
        renew();
        clean_ = take_step(*bench_, operation_);
    }

    AllocationPoints run() {
        for (std::uint64_t k = 0; point(k); ++k) {
            if (kind_ == Bench::kCold) renew();
        }
        close();
        return std::move(points_);
    }

  private:
    /// False when the step has no k-th allocation.
    bool point(std::uint64_t k) {
        const std::vector<std::byte> committed = bench_->committed();
        const std::uint64_t device_memory = bench_->live_allocations();
        const std::uint64_t host_memory = host_memory::live();
        bool works = false, unchanged = false;
        std::uint64_t host_left = 0;
        Ending::Kind kind = Ending::Kind::kDone;
        bool reached = false;
        {
            const Ending ending = run_with_failure(k, *bench_, operation_, clean_);
            kind = ending.kind;
            reached = ending.reached;
            works = bench_->settle();
            unchanged = bench_->committed() == committed;
            if (!ending.as_wanted) require(k, false, ending.text.empty() ? "another outcome" : ending.text);
            bench_->log().calls = {};
        }
        host_left = host_memory::live() - host_memory;
        require(k, reached || kind == Ending::Kind::kDone, "the step fails undisturbed");
        require(k, unchanged, "inputs or committed state changed");
        require(k, bench_->live_allocations() == device_memory, "device memory is left allocated");
        if (!reached) return false;
        ++(kind == Ending::Kind::kDone       ? points_.completed
           : kind == Ending::Kind::kBadAlloc ? points_.thrown
                                             : points_.reported);
        // A cold device keeps what it has loaded, observers what they count, and a failed device why it failed. What
        // those leave shows at the end, when all must be gone.
        if (kind_ == Bench::kWarm && works) {
            require(k, host_left == 0, std::to_string(host_left) + " host allocations are left");
        }
        if (!works) {
            require(k, kind == Ending::Kind::kError, "the device failed, and the step does not tell");
            renew();
        }
        require(k, take_step(*bench_, operation_) == clean_, "the next step differs from an undisturbed one");
        bench_->log().calls = {};
        return true;
    }

    void require(std::uint64_t k, bool holds, const std::string& problem) {
        if (!holds) points_.problems.push_back("allocation " + std::to_string(k) + ": " + problem);
    }

    void close() {
        if (!bench_) return;
        for (const std::string& problem : bench_->close()) points_.problems.push_back("at the end: " + problem);
        bench_.reset();
    }

    void renew() {
        close();
        bench_.emplace(group_, BenchOptions{.bare = kind_ != Bench::kObserved});
        if (kind_ == Bench::kCold) return;
        // Twice: containers that grow and stay have grown by then.
        for (int i = 0; i < 2; ++i) take_step(*bench_, operation_);
        bench_->log().calls = {};
    }

    const Group& group_;
    const Operation& operation_;
    Bench kind_;
    Outcome clean_;
    std::optional<FaultBench> bench_;
    AllocationPoints points_;
};

}  // namespace

AllocationPoints fail_every_allocation(const Group& group, const Operation& operation, Bench kind) {
    {
        FaultBench bench(group);  // what is made once in a program is made
        take_step(bench, operation);
    }
    const std::uint64_t before = host_memory::live();
    AllocationPoints points = Enumerator(group, operation, kind).run();
    // Empty strings in it hold no memory of their own; what problems hold does not matter any more.
    if (points.problems.empty() && host_memory::live() != before) {
        points.problems.push_back(std::to_string(host_memory::live() - before) + " host allocations are left in all");
    }
    return points;
}

AllocationPoints fail_every_allocation(const std::function<std::string()>& ending) {
    AllocationPoints points;
    const std::string clean = ending();
    for (std::uint64_t k = 0;; ++k) {
        const std::uint64_t before = host_memory::live();
        bool thrown = false, same = false, reached = false;
        host_memory::fail_at(k);
        try {
            const std::string got = ending();
            reached = host_memory::stop_failing();
            same = got == clean;
        } catch (const std::bad_alloc&) {
            reached = host_memory::stop_failing();
            thrown = true;
        }
        const std::uint64_t left = host_memory::live() - before;
        const std::string at = "allocation " + std::to_string(k) + ": ";
        if (left != 0) points.problems.push_back(at + std::to_string(left) + " host allocations are left");
        if (!thrown && !same) points.problems.push_back(at + "another ending");
        if (!reached) return points;
        ++(thrown ? points.thrown : points.completed);
    }
}

}  // namespace gradguard::testing
