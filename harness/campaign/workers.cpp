// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/workers.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace gradguard::harness {
namespace {

constexpr std::uint64_t kChunk = 32;
constexpr std::chrono::milliseconds kProgressInterval{100};

}  // namespace

const Bench& OpenSubjects::bench(const std::string& name) {
    Opened& opened = opened_[name];
    if (opened.bench == nullptr) {
        opened.subject = factory_(name);
        opened.bench = std::make_unique<Bench>(*opened.subject, factory_);
    }
    return *opened.bench;
}

Workers::Workers(const CampaignOptions& options, const Plan& plan)
    : options_(options), plan_(plan), tallies_(plan.pairs().size()) {
    if (!options.cases) return;
    const std::uint64_t all = *options.cases;
    own_cases_ = all > options.shard ? (all - options.shard - 1) / options.shards + 1 : 0;
}

void Workers::run() {
    begin_ = Clock::now();
    running_ = options_.jobs;
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < options_.jobs; ++i) threads.emplace_back([this] { work(); });
    {
        std::unique_lock lock(mutex_);
        while (!finished_.wait_for(lock, kProgressInterval, [this] { return running_ == 0; })) {
            lock.unlock();
            tell_progress();
            lock.lock();
        }
    }
    threads.clear();  // joins
    // After a stop there may be gaps; what is there counts.
    for (auto& [index, chunk] : waiting_) {
        if (!failed_ && !thrown_) count(chunk);
    }
    waiting_.clear();
    interrupted_ = options_.stop != nullptr && *options_.stop;
    if (thrown_) std::rethrow_exception(thrown_);
}

void Workers::tell_progress() const {
    if (!options_.progress) return;
    CampaignProgress progress;
    progress.cases = done_;
    progress.of = own_cases_;
    progress.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    progress.stage = "cases";
    {
        const std::lock_guard lock(mutex_);
        for (const Tally& tally : tallies_)
            progress.worst_fraction = std::max(progress.worst_fraction, tally.worst_fraction());
    }
    options_.progress(progress);
}

bool Workers::out_of_time() const {
    if (options_.stop != nullptr && *options_.stop) return true;
    return options_.time && Clock::now() - begin_ >= *options_.time;
}

void Workers::work() {
    OpenSubjects subjects(options_.factory);
    while (!out_of_time()) {
        const std::uint64_t index = next_chunk_++;
        if (index > failed_chunk_ || (own_cases_ && index * kChunk >= *own_cases_)) break;
        deliver(index, run_chunk(index, subjects));
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) finished_.notify_all();
}

Workers::Chunk Workers::run_chunk(std::uint64_t chunk, OpenSubjects& subjects) {
    Chunk result;
    const std::uint64_t end = std::min((chunk + 1) * kChunk, own_cases_.value_or(UINT64_MAX));
    for (std::uint64_t own = chunk * kChunk; own < end; ++own) {
        if (chunk > failed_chunk_ || out_of_time()) break;
        const std::uint64_t number = own * options_.shards + options_.shard;
        try {
            run_case(number, subjects, result);
        } catch (...) {
            result.thrown = std::current_exception();
        }
        ++done_;
        if (!result.failed && !result.thrown) continue;
        std::uint64_t known = failed_chunk_;
        while (chunk < known && !failed_chunk_.compare_exchange_weak(known, chunk)) {
        }
        break;
    }
    return result;
}

void Workers::run_case(std::uint64_t number, OpenSubjects& subjects, Chunk& chunk) const {
    const Plan::Place place = plan_.at(number);
    const Pair& pair = plan_.pairs()[place.pair];
    const Case c = case_of(pair, recipe_of(pair, options_.shape, options_.seed, place.index));
    const PropertyVerdict verdict = pair.property->check(*pair.property, subjects.bench(pair.subject), c);
    chunk.tallies[place.pair].add(number, c, verdict);
    ++chunk.cases;
    if (verdict.failed()) chunk.failed = number;
}

void Workers::deliver(std::uint64_t index, Chunk chunk) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(index, std::move(chunk));
    while (!waiting_.empty() && waiting_.begin()->first == next_to_count_ && !failed_ && !thrown_) {
        count(waiting_.begin()->second);
        waiting_.erase(waiting_.begin());
        ++next_to_count_;
    }
}

void Workers::count(Chunk& chunk) {
    for (const auto& [pair, tally] : chunk.tallies) tallies_[pair].merge(tally);
    cases_ += chunk.cases;
    failed_ = chunk.failed;
    thrown_ = chunk.thrown;
}

}  // namespace gradguard::harness
