// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_module.h"

namespace gradguard::cuda {
namespace {

/// What lies outside a buffer would be somebody else's memory; the driver sees only part of that.
CUdeviceptr inside(const BufferRange& range, std::uint64_t host_bytes, const char* operation) {
    if (range.bytes != host_bytes) {
        fail(operation, "want ranges of one length, got " + std::to_string(range.bytes) + " and " +
                            std::to_string(host_bytes) + " bytes");
    }
    if (range.byte_offset > range.buffer.bytes || range.bytes > range.buffer.bytes - range.byte_offset) {
        fail(operation, "want a range inside the buffer of " + std::to_string(range.buffer.bytes) + " bytes, got " +
                            std::to_string(range.bytes) + " bytes from " + std::to_string(range.byte_offset));
    }
    return range.buffer.address + range.byte_offset;
}

std::size_t total_bytes(const std::vector<BufferRange>& ranges) {
    std::size_t bytes = 0;
    for (const BufferRange& range : ranges) bytes += range.bytes;
    return bytes;
}

}  // namespace

/// The bytes lie one range after the other in pinned memory, once `filled` is reached.
class CudaReadback : public Readback {
  public:
    CudaReadback(std::shared_ptr<CudaQueue> queue, CudaQueue::ReadbackBlock block, std::vector<BufferRange> ranges)
        : queue_(std::move(queue)), block_(std::move(block)), ranges_(std::move(ranges)) {}

    ~CudaReadback() override {
        if (block_.memory != nullptr) block_.filled->settle();  // the device may still write there
    }

    std::vector<std::vector<std::byte>> wait() override {
        if (block_.memory == nullptr) fail("readback", "its data have been taken before");
        const Current current(queue_->context_, "readback");
        block_.filled->wait(current);
        std::vector<std::vector<std::byte>> data;
        const std::byte* next = block_.memory->bytes().data();
        for (const BufferRange& range : ranges_) {
            data.emplace_back(next, next + range.bytes);
            next += range.bytes;
        }
        ranges_.clear();
        queue_->blocks_.push_back(std::move(block_));
        queue_->let_go_of_what_is_done();
        return data;
    }

  private:
    std::shared_ptr<CudaQueue> queue_;
    CudaQueue::ReadbackBlock block_;
    std::vector<BufferRange> ranges_;
};

Staging::Staging(const std::shared_ptr<Context>& context, const std::string& operation)
    : halves_{Half{{context, kHalfBytes, operation}, {context, operation}},
              Half{{context, kHalfBytes, operation}, {context, operation}}} {}

std::span<std::byte> Staging::next(const Current& current, CUstream stream, std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;  // pieces begin on cache lines
    if (halves_[filling_].used == kHalfBytes) {
        halves_[filling_].read.record(current, stream);
        halves_[filling_].submitted = true;
        Half& other = halves_[1 - filling_];
        if (other.submitted) other.read.wait(current);
        other.submitted = false;
        other.used = 0;
        filling_ = 1 - filling_;
    }
    Half& half = halves_[filling_];
    const std::span<std::byte> piece = half.memory.bytes().subspan(half.used, std::min(bytes, kHalfBytes - half.used));
    half.used = std::min(kHalfBytes, (half.used + piece.size() + kAlignment - 1) / kAlignment * kAlignment);
    return piece;
}

void Staging::all_done() {
    for (Half& half : halves_) {
        half.used = 0;
        half.submitted = false;
    }
}

CudaQueue::CudaQueue(std::shared_ptr<CudaDevice> device, std::shared_ptr<Context> context,
                     std::shared_ptr<Stream> stream)
    : device_(std::move(device)), context_(std::move(context)), stream_(std::move(stream)) {}

CudaQueue::~CudaQueue() { stream_->close(); }

Device& CudaQueue::device() const { return *device_; }

std::unique_ptr<Event> CudaQueue::take_event(const std::string& operation) {
    if (events_.empty()) return std::make_unique<Event>(context_, operation);
    std::unique_ptr<Event> event = std::move(events_.back());
    events_.pop_back();
    return event;
}

void CudaQueue::let_go_of_what_is_done() {
    while (!held_.empty() && held_.front().done != nullptr && held_.front().done->reached()) {
        events_.push_back(std::move(held_.front().done));
        held_.pop_front();
    }
}

void CudaQueue::launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape,
                       std::span<const std::byte> arguments, std::vector<Buffer> retained) {
    const auto ours = std::dynamic_pointer_cast<const CudaKernel>(kernel);
    if (ours == nullptr || ours->module().context() != context_) {
        fail("launch", "the kernel was loaded by another device");
    }
    const Current current(context_, "launch", ours->name());
    let_go_of_what_is_done();
    // The stream's own buffers are freed in its order, after the kernel; foreign memory the caller keeps alive.
    std::erase_if(retained, [&](const Buffer& buffer) { return buffer.owner == nullptr || stream_->frees(buffer); });
    std::unique_ptr<Event> done = retained.empty() ? nullptr : take_event("launch");
    running_.insert(ours);

    // With its size, which the driver holds against the kernel's own; an array of parameters has none.
    std::vector<std::byte> buffer(arguments.begin(), arguments.end());
    std::size_t size = buffer.size();
    void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), buffer.data(),
                     reinterpret_cast<void*>(kLaunchParamBufferSize), &size, reinterpret_cast<void*>(kLaunchParamEnd)};
    current.call(current.driver().cuLaunchKernel, ours->function(), shape.blocks, 1U, 1U, shape.threads, 1U, 1U, 0U,
                 stream(), static_cast<void**>(nullptr), static_cast<void**>(extra));
    if (done == nullptr) return;
    held_.push_back({std::move(retained), nullptr});
    done->record(current, stream());
    held_.back().done = std::move(done);
}

void CudaQueue::copy_to_device(const BufferRange& destination, std::span<const std::byte> source) {
    constexpr char kOperation[] = "copy_to_device";
    CUdeviceptr target = inside(destination, source.size(), kOperation);
    const Current current(context_, kOperation, std::to_string(source.size()) + " bytes");
    if (staging_ == nullptr && !source.empty()) staging_ = std::make_unique<Staging>(context_, kOperation);
    while (!source.empty()) {
        const std::span<std::byte> piece = staging_->next(current, stream(), source.size());
        std::memcpy(piece.data(), source.data(), piece.size());
        current.call(current.driver().cuMemcpyHtoDAsync_v2, target, static_cast<const void*>(piece.data()),
                     piece.size(), stream());
        target += piece.size();
        source = source.subspan(piece.size());
    }
}

void CudaQueue::copy_to_host(std::span<std::byte> destination, const BufferRange& source) {
    constexpr char kOperation[] = "copy_to_host";
    const CUdeviceptr from = inside(source, destination.size(), kOperation);
    const Current current(context_, kOperation, std::to_string(destination.size()) + " bytes");
    if (destination.empty()) return;
    current.call(current.driver().cuMemcpyDtoHAsync_v2, static_cast<void*>(destination.data()), from,
                 destination.size(), stream());
}

void CudaQueue::copy_on_device(const BufferRange& destination, const BufferRange& source) {
    constexpr char kOperation[] = "copy_on_device";
    const CUdeviceptr from = inside(source, source.bytes, kOperation);
    const CUdeviceptr target = inside(destination, source.bytes, kOperation);
    const Current current(context_, kOperation, std::to_string(source.bytes) + " bytes");
    if (source.bytes == 0) return;
    current.call(current.driver().cuMemcpyDtoDAsync_v2, target, from, static_cast<std::size_t>(source.bytes), stream());
}

CudaQueue::ReadbackBlock CudaQueue::take_block(std::size_t bytes) {
    const auto large_enough = [&](const ReadbackBlock& block) { return block.memory->bytes().size() >= bytes; };
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), large_enough);
    if (found != blocks_.end()) {
        ReadbackBlock block = std::move(*found);
        blocks_.erase(found);
        return block;
    }
    blocks_.clear();  // too small; one block grows instead of many gathering
    std::size_t size = 4096;
    while (size < bytes) size *= 2;
    auto memory = std::make_unique<PinnedMemory>(context_, size, "readback");
    return {std::move(memory), std::make_unique<Event>(context_, "readback")};
}

std::unique_ptr<Readback> CudaQueue::readback(std::vector<BufferRange> ranges) {
    const std::size_t bytes = total_bytes(ranges);
    for (const BufferRange& range : ranges) inside(range, range.bytes, "readback");
    const Current current(context_, "readback", std::to_string(bytes) + " bytes");
    ReadbackBlock block = take_block(bytes);
    std::byte* next = block.memory->bytes().data();
    try {
        for (const BufferRange& range : ranges) {
            if (range.bytes == 0) continue;
            current.call(current.driver().cuMemcpyDtoHAsync_v2, static_cast<void*>(next),
                         range.buffer.address + range.byte_offset, static_cast<std::size_t>(range.bytes), stream());
            next += range.bytes;
        }
        block.filled->record(current, stream());
    } catch (const std::exception&) {
        // Copies submitted before the one that failed still write to the block.
        context_->release(current.driver().cuStreamSynchronize, stream());
        throw;
    }
    return std::make_unique<CudaReadback>(shared_from_this(), std::move(block), std::move(ranges));
}

void CudaQueue::synchronize() {
    const Current current(context_, "synchronize");
    current.call(current.driver().cuStreamSynchronize, stream());
    held_.clear();
    running_.clear();
    if (staging_ != nullptr) staging_->all_done();
    context_->throw_failed_release("synchronize");
}

CudaTimer::CudaTimer(std::shared_ptr<CudaQueue> queue)
    : queue_(std::move(queue)), start_(queue_->context(), "time", true), stop_(queue_->context(), "time", true) {}

void CudaTimer::start() const { start_.record(Current(queue_->context(), "time"), queue_->stream()); }

void CudaTimer::stop() const { stop_.record(Current(queue_->context(), "time"), queue_->stream()); }

float CudaTimer::milliseconds() const {
    const Current current(queue_->context(), "time");
    stop_.wait(current);
    float milliseconds = 0;
    current.call(current.driver().cuEventElapsedTime, &milliseconds, start_.handle(), stop_.handle());
    return milliseconds;
}

}  // namespace gradguard::cuda
