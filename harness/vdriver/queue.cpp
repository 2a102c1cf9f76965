// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/queue.h"

#include <algorithm>

namespace gradguard::vdriver {
namespace {

thread_local bool t_in_host_function = false;
/// Functions of the program that run now, of all contexts. Under the driver's lock.
int host_functions = 0;

/// Queued work beyond this runs, whatever the seed says: dependencies between streams are followed by recursion.
constexpr std::size_t kMostPending = 256;

}  // namespace

Queues::Queues(std::uint64_t seed, bool hold_back, std::mutex& lock)
    : lock_(lock), random_(seed), hold_back_(hold_back), legacy_(std::make_shared<Stream>()) {
    legacy_->id = 1;
}

std::shared_ptr<Stream> Queues::create(unsigned flags, int priority) {
    auto stream = std::make_shared<Stream>();
    stream->flags = flags;
    stream->priority = priority;
    stream->waits_for_legacy = (flags & cuda::CU_STREAM_NON_BLOCKING) == 0;
    stream->id = ++last_ticket_;
    stream->last = stream->done = stream->id;
    streams_.push_back(stream);
    return stream;
}

void Queues::destroy(const std::shared_ptr<Stream>& stream) {
    run_all(stream);
    std::erase(streams_, stream);
}

std::shared_ptr<Stream> Queues::of_thread() {
    const std::thread::id thread = std::this_thread::get_id();
    for (const auto& [id, stream] : of_threads_) {
        if (id == thread) return stream;
    }
    of_threads_.emplace_back(thread, create(cuda::CU_STREAM_DEFAULT, 0));
    return of_threads_.back().second;
}

Point Queues::append(const std::shared_ptr<Stream>& stream, Work work) {
    work.ticket = ++last_ticket_;
    work.after = std::move(stream->waits);
    stream->waits.clear();
    if (stream == legacy_) {
        for (const auto& other : streams_) {
            if (other->waits_for_legacy && !idle(other)) work.after.push_back({other, other->last});
        }
    } else if (stream->waits_for_legacy && !idle(legacy_)) {
        work.after.push_back({legacy_, legacy_->last});
    }
    stream->last = work.ticket;
    stream->pending.push_back(std::move(work));
    return {stream, stream->last};
}

Point Queues::submit(const std::shared_ptr<Stream>& stream, std::function<void()> run, bool even_after_failure) {
    const Point point = append(stream, {std::move(run), even_after_failure, 0, {}});
    const bool now = !hold_back_ || (held_ == 0 && random_.coin()) || stream->pending.size() > kMostPending;
    // While a host function runs, nobody may have to wait for it here: it may need what the caller holds.
    if (now && host_functions == 0) run_to(point);
    return point;
}

Point Queues::submit_held(const std::shared_ptr<Stream>& stream, std::function<void()> run) {
    ++held_;
    const Point point = append(stream, {[this, work = std::move(run)] {
                                            --held_;
                                            if (!failed()) work();
                                        },
                                        true,
                                        0,
                                        {}});
    if (!hold_back_ && host_functions == 0) run_to(point);
    return point;
}

void Queues::wait_while_running(const Stream& stream) {
    while (stream.running) progressed_.wait(lock_);
}

void Queues::run_to(Point point) {
    Stream& stream = *point.stream;
    while (!stream.complete(point.ticket)) {
        wait_while_running(stream);
        if (!stream.complete(point.ticket)) run_front(point.stream);
    }
}

void Queues::run_front(const std::shared_ptr<Stream>& stream) {
    const Work work = std::move(stream->pending.front());
    stream->pending.pop_front();
    stream->running = true;
    for (const Point& point : work.after) run_to(point);
    if (!failed() || work.even_after_failure) {
        nanoseconds += 1000;
        work.run();
    }
    stream->running = false;
    stream->done = work.ticket;
    progressed_.notify_all();
}

void Queues::run_all() {
    std::vector<std::shared_ptr<Stream>> order = streams_;
    order.push_back(legacy_);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    for (const auto& stream : order) run_all(stream);
}

void Queues::run_one(const std::shared_ptr<Stream>& stream) {
    if (!stream->running && !stream->pending.empty()) run_to({stream, stream->pending.front().ticket});
}

bool Queues::poll(const std::shared_ptr<Stream>& stream) {
    if (stream == legacy_) {
        // A copy: others may add streams while a host function runs.
        for (const auto& other : std::vector(streams_)) {
            if (!other->waits_for_legacy || idle(other)) continue;
            run_one(other);
            return false;
        }
    }
    if (idle(stream)) return true;
    run_one(stream);
    return false;
}

bool Queues::in_host_function() { return t_in_host_function; }

void Queues::call_host(const std::function<void()>& function) {
    t_in_host_function = true;
    ++host_functions;
    lock_.unlock();
    function();
    lock_.lock();
    --host_functions;
    t_in_host_function = false;
}

}  // namespace gradguard::vdriver
