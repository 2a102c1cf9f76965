// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/campaign.h"

namespace gradguard::harness {

/// One thread's subjects, opened when first needed.
class OpenSubjects {
  public:
    explicit OpenSubjects(const SubjectFactory& factory) : factory_(factory) {}
    const Bench& bench(const std::string& name);

  private:
    struct Opened {
        std::unique_ptr<Subject> subject;
        std::unique_ptr<Bench> bench;
    };
    const SubjectFactory& factory_;
    std::map<std::string, Opened> opened_;
};

/// Runs the cases of a shard on several threads. Numbers are taken in chunks; the results of a chunk count once all
/// chunks before it are complete, up to the first failing case, so that what counts does not depend on the threads.
class Workers {
  public:
    Workers(const CampaignOptions& options, const Plan& plan);

    /// Until a limit, a failure or a stop; reports progress on the way. Rethrows what the first failing case threw.
    void run();

    const std::vector<Tally>& tallies() const { return tallies_; }   ///< By pair.
    std::optional<std::uint64_t> failed() const { return failed_; }  ///< Number of the first failing case.
    std::uint64_t cases() const { return cases_; }
    bool interrupted() const { return interrupted_; }

  private:
    using Clock = std::chrono::steady_clock;
    struct Chunk {
        std::map<std::size_t, Tally> tallies;
        std::uint64_t cases = 0;
        std::optional<std::uint64_t> failed;  ///< Number of the case.
        std::exception_ptr thrown;
    };

    void work();
    Chunk run_chunk(std::uint64_t chunk, OpenSubjects& subjects);
    void run_case(std::uint64_t number, OpenSubjects& subjects, Chunk& chunk) const;
    void deliver(std::uint64_t index, Chunk chunk);
    void count(Chunk& chunk);
    bool out_of_time() const;
    void tell_progress() const;

    const CampaignOptions& options_;
    const Plan& plan_;
    std::optional<std::uint64_t> own_cases_;  ///< Of this shard.
    Clock::time_point begin_;
    std::atomic<std::uint64_t> next_chunk_{0};
    std::atomic<std::uint64_t> failed_chunk_{UINT64_MAX};
    std::atomic<std::uint64_t> done_{0};

    mutable std::mutex mutex_;
    std::condition_variable finished_;
    unsigned running_ = 0;
    std::uint64_t next_to_count_ = 0;
    std::map<std::uint64_t, Chunk> waiting_;
    std::vector<Tally> tallies_;
    std::optional<std::uint64_t> failed_;
    std::exception_ptr thrown_;
    std::uint64_t cases_ = 0;
    bool interrupted_ = false;
};

}  // namespace gradguard::harness
