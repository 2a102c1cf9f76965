// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "harness/vdriver/driver_abi_wide.h"
#include "harness/vgpu/random.h"

namespace gradguard::vdriver {

struct Stream;

/// A point in a stream: everything that was submitted to it up to a ticket.
struct Point {
    std::shared_ptr<Stream> stream;
    std::uint64_t ticket = 0;
};

/// A piece of queued work.
struct Work {
    std::function<void()> run;
    /// Runs even when an earlier failure has stopped the context (callbacks that are told of it).
    bool even_after_failure = false;
    std::uint64_t ticket = 0;
    std::vector<Point> after;  ///< What must be complete before it begins, besides what is in front of it.
};

/// In-order work. Tickets are of the context, so that a dependency always has a smaller one than what waits for it.
struct Stream {
    unsigned flags = 0;
    int priority = 0;
    bool waits_for_legacy = true;  ///< Not CU_STREAM_NON_BLOCKING.
    std::uint64_t id = 0;
    std::deque<Work> pending;
    std::uint64_t last = 0;  ///< Submitted.
    std::uint64_t done = 0;
    bool running = false;
    std::vector<Point> waits;  ///< For the next work: cuStreamWaitEvent.

    bool complete(std::uint64_t ticket) const { return ticket <= done; }
};

/// All streams of a context. Work is run by whoever waits for it, or at submission by the seed's choice. Every function
/// is called with the driver's lock held.
class Queues {
  public:
    /// `lock` is the driver's: it is let go while a host function of the program runs.
    Queues(std::uint64_t seed, bool hold_back, std::mutex& lock);

    std::shared_ptr<Stream> create(unsigned flags, int priority);
    /// Runs what is in it and forgets it.
    void destroy(const std::shared_ptr<Stream>& stream);
    const std::shared_ptr<Stream>& legacy() const { return legacy_; }
    /// The calling thread's own (CU_STREAM_PER_THREAD).
    std::shared_ptr<Stream> of_thread();

    /// Appends work. The legacy stream waits for all streams that are not CU_STREAM_NON_BLOCKING, and they for it.
    Point submit(const std::shared_ptr<Stream>& stream, std::function<void()> run, bool even_after_failure = false);
    /// A copy to host memory that the program may look at: never complete before somebody waits.
    Point submit_held(const std::shared_ptr<Stream>& stream, std::function<void()> run);
    /// Work that comes later in `stream` waits for `point`.
    static void wait_for(const std::shared_ptr<Stream>& stream, const Point& point) { stream->waits.push_back(point); }

    void run_to(Point point);
    void run_all(const std::shared_ptr<Stream>& stream) { run_to({stream, stream->last}); }
    /// Everything, streams in an order that the seed picks.
    void run_all();
    /// One piece of work of the stream (and what it depends on): whoever polls gets on.
    void run_one(const std::shared_ptr<Stream>& stream);
    /// Whether all is done, for the legacy stream that of all that it waits for too; if not, one piece of work is run.
    bool poll(const std::shared_ptr<Stream>& stream);
    bool idle(const std::shared_ptr<Stream>& stream) const { return stream->complete(stream->last); }

    /// A failure stops the context: what is queued is dropped, and so is what comes.
    bool failed() const { return failure_.has_value(); }
    cuda::CUresult failure() const { return failure_.value_or(cuda::CUDA_SUCCESS); }
    /// Only the first counts.
    void fail(cuda::CUresult code) {
        if (!failure_) failure_ = code;
    }

    /// Runs a function of the program without the driver's lock; what it calls of the driver is not permitted.
    void call_host(const std::function<void()>& function);
    static bool in_host_function();

    /// Virtual time, see control.h.
    double nanoseconds = 0;

  private:
    Point append(const std::shared_ptr<Stream>& stream, Work work);
    void run_front(const std::shared_ptr<Stream>& stream);
    void wait_while_running(const Stream& stream);

    std::mutex& lock_;
    std::condition_variable_any progressed_;
    vgpu::Random random_;
    bool hold_back_;
    std::uint64_t last_ticket_ = 0;
    std::size_t held_ = 0;  ///< Copies to the host that wait for somebody.
    std::shared_ptr<Stream> legacy_;
    std::vector<std::shared_ptr<Stream>> streams_;
    std::vector<std::pair<std::thread::id, std::shared_ptr<Stream>>> of_threads_;
    std::optional<cuda::CUresult> failure_;
};

}  // namespace gradguard::vdriver
