// SPDX-License-Identifier: Apache-2.0
#include "bench/copy_bandwidth.h"

#include <chrono>
#include <span>
#include <vector>

#include "bench/device/embedded.h"
#include "bench/device/params.h"
#include "bench/device_timer.h"
#include "bench/spread.h"
#include "kernels/host/launch_plan.h"

namespace gradguard::bench {
namespace {

constexpr std::uint64_t kWordBytes = 16;

}  // namespace

void submit_copy(const Tensor& source, const Tensor& destination) {
    CopyArguments arguments{};
    arguments.source = source.data();
    arguments.destination = destination.data();
    arguments.words = static_cast<unsigned int>(source.bytes() / kWordBytes);
    Queue& queue = *source.queue;
    Device& device = queue.device();
    const LaunchShape shape{kernels::update_blocks(arguments.words, device.properties().max_blocks_in_x),
                            kThreadsPerBlock};
    queue.launch(device.kernel(kCopyModule, "copy_words"), shape, std::as_bytes(std::span(&arguments, 1)),
                 {source.storage, destination.storage});
}

double CopyBandwidth::bytes_per_second() const {
    return 2.0 * static_cast<double>(copied_bytes) / spread_of(seconds).median;
}

CopyBandwidth measure_copy(const std::shared_ptr<Queue>& queue, std::uint64_t bytes, std::uint64_t samples) {
    using Clock = std::chrono::steady_clock;
    const std::uint64_t floats = (bytes + kWordBytes - 1) / kWordBytes * (kWordBytes / sizeof(float));
    const Tensor source = Tensor::allocate(queue, DType::kF32, {floats});
    const Tensor destination = Tensor::allocate(queue, DType::kF32, {floats});
    source.upload(std::vector<std::byte>(source.bytes()));
    const DeviceTimer timer(queue);
    CopyBandwidth result{source.bytes(), {}, false};
    submit_copy(source, destination);
    queue->synchronize();
    for (std::uint64_t i = 0; i < samples; ++i) {
        const Clock::time_point started = Clock::now();
        timer.start();
        submit_copy(source, destination);
        timer.stop();
        queue->synchronize();
        const double wall = std::chrono::duration<double>(Clock::now() - started).count();
        const std::optional<double> on_device = timer.seconds();
        result.by_device_clock = on_device.has_value();
        result.seconds.push_back(on_device.value_or(wall));
    }
    return result;
}

}  // namespace gradguard::bench
