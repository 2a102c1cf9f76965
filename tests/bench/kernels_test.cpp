// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "bench/copy_bandwidth.h"
#include "bench/spread.h"
#include "bench/step_counts.h"
#include "reference/exact/float_bits.h"
#include "reference/model/update.h"
#include "tests/bench/group.h"
#include "tests/support/values.h"

namespace gradguard::bench {
namespace {

using testing::BenchDevice;
using testing::small_options;

/// Every element of the kernel's result against the first two lines of contract section 6.
void expect_the_contracts_lines(const testing::Gradient& gradient, bool contracted) {
    const BenchDevice device(small_options(contracted));
    const Tensor stored = Tensor::allocate(device.queue, gradient.dtype, {gradient.elements});
    stored.upload(gradient.bytes);
    for (const float scale : {1.0F, 128.0F, 0x1p-127F, 3.0F}) {
        for (const float clip : {1.0F, 0.3F, 0.0F}) {
            reference::LineCoefficients<float> c{};
            c.r = 1.0F / scale;
            c.clip = clip;
            c.clips = clip != 1.0F;
            const std::vector<float> got = downloaded_floats(unscaled_and_clipped(stored, scale, clip));
            for (std::uint64_t i = 0; i < gradient.elements; ++i) {
                const float want = reference::Lines<>::effective_gradient(reference::raw_value(gradient.view(), i), c);
                ASSERT_TRUE(reference::same_float(got[i], want)) << i << ": " << got[i] << ", want " << want;
            }
        }
    }
    EXPECT_TRUE(device.device->findings().empty());
}

TEST(UnscaleClip, EveryHalfHasTheContractsBits) {
    std::vector<std::uint16_t> words(65536);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        expect_the_contracts_lines(testing::gradient_of_words(dtype, words), false);
    }
}

TEST(UnscaleClip, FloatsOfEveryClassHaveTheContractsBitsInBothBuilds) {
    std::vector<float> values;
    for (std::uint32_t i = 0; i < 5000; ++i) values.push_back(testing::any_float(i * 2654435761U));
    for (const bool contracted : {false, true}) expect_the_contracts_lines(testing::f32(values), contracted);
}

TEST(CopyWords, EveryByteIsCopied) {
    const BenchDevice device(small_options());
    for (const std::uint64_t words : {1, 255, 1025, 5000}) {
        std::vector<std::byte> bytes(16 * words);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + (i >> 8U));
        const Tensor source = Tensor::allocate(device.queue, DType::kF32, {4 * words});
        const Tensor destination = Tensor::allocate(device.queue, DType::kF32, {4 * words});
        source.upload(bytes);
        submit_copy(source, destination);
        EXPECT_EQ(downloaded(destination), bytes);
    }
    EXPECT_TRUE(device.device->findings().empty());
}

TEST(CopyBandwidth, CountsWhatIsReadAndWhatIsWritten) {
    const CopyBandwidth copy{1000, {2.0, 1.0, 4.0}, false};
    EXPECT_EQ(copy.bytes_per_second(), 1000.0);
}

TEST(CopyBandwidth, KeepsEverySampleOfAWholeNumberOfWords) {
    const BenchDevice device(small_options());
    const CopyBandwidth copy = measure_copy(device.queue, 1001, 4);
    EXPECT_EQ(copy.copied_bytes, 1008U);
    EXPECT_EQ(copy.seconds.size(), 4U);
    EXPECT_FALSE(copy.by_device_clock);
}

TEST(Spread, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddle) {
    const Spread odd = spread_of({5, 1, 3});
    EXPECT_EQ(odd.median, 3);
    EXPECT_EQ(odd.minimum, 1);
    EXPECT_EQ(odd.maximum, 5);
    EXPECT_EQ(spread_of({4, 1, 2, 8}).median, 3);
}

std::uint64_t bytes_of(const std::map<std::string, observers::Totals>& kernels) {
    std::uint64_t bytes = 0;
    for (const auto& [name, totals] : kernels) bytes += totals.global_reads.bytes + totals.global_writes.bytes;
    return bytes;
}

TEST(Savings, AreOneLaunchFourBytesOfTemporaryAndEightOfTrafficForEachElement) {
    for (const DType dtype : kAllDTypes) {
        for (const std::uint64_t elements : {1, 70, 1500}) {
            StepBenchOptions options = small_options(true);
            options.dtype = dtype;
            options.elements = elements;
            const BenchDevice device(options);
            const StepPath guarded = guarded_path(options);
            const StepPath staged = staged_path(options);
            const CallCounts less = count_calls(device.device, device.start, guarded);
            const CallCounts more = count_calls(device.device, device.start, staged);
            EXPECT_EQ(more.launches - less.launches, options.tensors);
            EXPECT_EQ(more.allocations - less.allocations, options.tensors);
            EXPECT_EQ(more.allocated_bytes - less.allocated_bytes, 4 * options.all_elements());
            EXPECT_EQ(more.readbacks, less.readbacks);
            EXPECT_EQ(more.readback_bytes, less.readback_bytes);
            const KernelSource kernels = device.device->kernel_source();
            EXPECT_EQ(bytes_of(count_work(kernels, device.start, staged)) -
                          bytes_of(count_work(kernels, device.start, guarded)),
                      8 * options.all_elements());
        }
    }
}

TEST(Savings, BytesOfEachPathAreThoseThatItsKernelsMove) {
    for (const DType dtype : kAllDTypes) {
        for (const bool amsgrad : {false, true}) {
            StepBenchOptions options = small_options();
            options.dtype = dtype;
            options.amsgrad = amsgrad;
            const BenchDevice device(options);
            for (const StepPath& path : step_paths(options)) {
                const auto work = count_work(device.device->kernel_source(), device.start, path);
                // One block reduces each of the small tensors: 12 bytes for its summary, and nothing to merge.
                EXPECT_EQ(bytes_of(work), path.bytes_per_element * options.all_elements() + 12 * options.tensors)
                    << path.name << ' ' << to_string(dtype);
            }
        }
    }
}

}  // namespace
}  // namespace gradguard::bench
