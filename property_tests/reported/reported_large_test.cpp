// SPDX-License-Identifier: Apache-2.0
// Rows of cases.csv about large tensors: N16, N33, N35, N38 and M09. The scans read the host's memory where it lies, so
// that no tensor is held twice.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <set>

#include "harness/devices/hooked_device.h"
#include "harness/devices/virtual_device.h"
#include "kernels/host/statistics.h"
#include "property_tests/reported/reported_case.h"
#include "reference/model/statistics.h"

namespace gradguard::testing {
namespace {

using reference::bits_of;
using reference::GradientView;

/// The virtual GPU with one build of the kernels, watched by `observers`, over values in the host's memory. At its end
/// any finding fails the test.
class Scanner {
  public:
    explicit Scanner(bool contracted, const std::string& observers = "all", std::uint64_t seed = 1) {
        harness::VirtualDeviceOptions options;
        options.observers = observers;
        options.machine.seed = seed;
        inner_ = harness::VirtualDevice::create(options);
        inner_->set_kernel_source(KernelSource::embedded(contracted));
        device_ = harness::hook_device(inner_, {log});
        queue_ = device_->create_queue();
    }
    Scanner(const Scanner&) = delete;
    Scanner& operator=(const Scanner&) = delete;
    ~Scanner() {
        queue_->synchronize();
        for (const vgpu::Finding& finding : inner_->final_findings()) ADD_FAILURE() << finding.message();
    }

    /// The same device may scan any number of views, one after the other.
    GradientStatsReport scan(const GradientView& view) const {
        const std::uint64_t bytes = view.elements * element_bytes(view.dtype);
        Buffer storage = inner_->map(const_cast<void*>(view.data), bytes);
        const auto mark = inner_->mark_read_only({storage, 0, bytes});
        const std::vector<Tensor> group = {Tensor::over(queue_, view.dtype, {view.elements}, std::move(storage))};
        GradientStatsReport report = gradient_stats_sync(group);
        queue_->synchronize();
        return report;
    }

    std::shared_ptr<harness::CallLog> log = std::make_shared<harness::CallLog>();

  private:
    std::shared_ptr<harness::VirtualDevice> inner_;
    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
};

void expect_same_report(const GradientStatsReport& got, const GradientStatsReport& want) {
    ASSERT_EQ(got.summaries.size(), 1U);
    EXPECT_EQ(bits_of(got.summaries[0].scale), bits_of(want.summaries[0].scale));
    EXPECT_EQ(bits_of(got.summaries[0].sumsq), bits_of(want.summaries[0].sumsq));
    EXPECT_EQ(bits_of(got.summaries[0].bad), bits_of(want.summaries[0].bad));
    EXPECT_EQ(got.stats.total_norm, want.stats.total_norm);
    EXPECT_EQ(bits_of(got.stats.max_finite_abs), bits_of(want.stats.max_finite_abs));
    EXPECT_EQ(got.stats.all_finite, want.stats.all_finite);
    EXPECT_EQ(got.stats.elements, want.stats.elements);
    EXPECT_EQ(got.reduction_launches, want.reduction_launches);
    EXPECT_EQ(got.readback_bytes, want.readback_bytes);
    EXPECT_EQ(got.scratch_bytes, want.scratch_bytes);
}

/// Both builds and the oracle give this norm, and the same report.
void expect_large_norm(const GradientView& view, double norm) {
    const GradientStatsReport want = reference::group_statistics({&view, 1}, 1.0F);
    EXPECT_EQ(want.stats.total_norm, norm);
    for (const bool contracted : {false, true}) expect_same_report(Scanner(contracted).scan(view), want);
}

TEST(Reported, N16_TheNormOfMillionsOfOnesIsExact) {
    const std::vector<float> values(std::size_t{1} << 26U, 1.0F);
    expect_large_norm({DType::kF32, values.data(), std::uint64_t{1} << 24U}, 4096.0);
    expect_large_norm({DType::kF32, values.data(), std::uint64_t{1} << 25U}, 5792.618751480198);
    expect_large_norm({DType::kF32, values.data(), std::uint64_t{1} << 26U}, 8192.0);
}

TEST(Reported, N38_TheNormOfMillionsOfF16ValuesIsFinite) {
    const std::vector<std::uint16_t> values(4194304, 0x3E00);  // 1.5
    expect_large_norm({DType::kF16, values.data(), values.size()}, 3072.0);
}

TEST(Reported, N35_TwentyScansHaveTheSameBits) {
    std::mt19937 random(20261201);
    std::vector<float> values(1000000);
    for (float& value : values) value = reference::float_of(random() & 0xBFFFFFFFU);  // finite, |value| < 2, no NaN
    const GradientView view = {DType::kF32, values.data(), values.size()};
    const GradientStatsReport want = reference::group_statistics({&view, 1}, 1.0F);
    for (std::uint64_t repeat = 0; repeat < 20; ++repeat) {
        SCOPED_TRACE("repeat " + std::to_string(repeat));
        expect_same_report(Scanner(repeat % 2 == 1, "all", repeat).scan(view), want);
    }
}

constexpr std::uint64_t kSmallSizes[] = {1, 2, 255, 256, 257, 1023, 1024, 1025};
constexpr std::uint64_t kLargeSizes[] = {262143, 262144, 262145, 1048575, 1048576, 1048577};

/// First, last, and both sides of every block's edge; with `powers` only of those at 256 times a power of two.
std::set<std::uint64_t> one_hot_places(std::uint64_t n, bool powers) {
    std::set<std::uint64_t> places = {0, n - 1};
    for (std::uint64_t edge = 256; edge <= n; edge = powers ? 2 * edge : edge + 256) {
        places.insert(edge - 1);
        if (edge < n) places.insert(edge);
    }
    return places;
}

/// Wherever the one value of 3 stands, the norm is 3 and the count n.
void expect_one_hot(std::uint64_t n, bool powers, const Scanner& gpu, bool ask_oracle) {
    std::vector<float> values(n, 0.0F);
    const GradientView view = {DType::kF32, values.data(), n};
    for (const std::uint64_t place : one_hot_places(n, powers)) {
        values[place] = 3.0F;
        const GradientStatsReport report = gpu.scan(view);
        ASSERT_EQ(report.stats.total_norm, 3.0) << "n = " << n << ", place " << place;
        ASSERT_EQ(report.stats.elements, n);
        if (ask_oracle) {
            ASSERT_EQ(reference::group_statistics({&view, 1}, 1.0F).stats.total_norm, 3.0);
        }
        values[place] = 0.0F;
    }
}

TEST(Reported, N33_OneValueIsSeenOnceAtEveryEdgeOfSmallTensors) {
    for (const bool contracted : {false, true}) {
        const Scanner gpu(contracted);
        for (const std::uint64_t n : kSmallSizes) expect_one_hot(n, false, gpu, true);
    }
}

TEST(Reported, N33_OneValueIsSeenOnceAtSomeEdgesOfLargeTensors) {
    const Scanner gpu(false);
    for (const std::uint64_t n : kLargeSizes) expect_one_hot(n, true, gpu, true);
}

/// Up to eight thousand scans: nobody watches but the machine, and the oracle is not asked.
void expect_one_hot_at_every_edge(std::uint64_t n) { expect_one_hot(n, false, Scanner(true, "none"), false); }

TEST(ReportedLong, N33_OneValueIsSeenOnceAtEveryEdgeAround2To18) {
    for (const std::uint64_t n : {262143U, 262144U, 262145U}) expect_one_hot_at_every_edge(n);
}
TEST(ReportedLong, N33_OneValueIsSeenOnceAtEveryEdgeBelow2To20) { expect_one_hot_at_every_edge(1048575); }
TEST(ReportedLong, N33_OneValueIsSeenOnceAtEveryEdgeOf2To20) { expect_one_hot_at_every_edge(1048576); }
TEST(ReportedLong, N33_OneValueIsSeenOnceAtEveryEdgeAbove2To20) { expect_one_hot_at_every_edge(1048577); }

/// 4 GiB of zeros that take no memory themselves as long as nobody writes to them; the observers take about as much.
struct Free {
    void operator()(float* values) const { std::free(values); }
};

TEST(ReportedGigabytes, M09_TheLoopOverTheLargestTensorEndsAndSeesItsLastElement) {
    const std::uint64_t n = (std::uint64_t{1} << 30U) - 1;
    const std::unique_ptr<float, Free> values(static_cast<float*>(std::calloc(n, sizeof(float))));
    ASSERT_NE(values, nullptr) << "no 4 GiB of address space";
    values.get()[n - 1] = 3.0F;
    const GradientView view = {DType::kF32, values.get(), n};
    const GradientStatsReport want = reference::group_statistics({&view, 1}, 1.0F);
    for (const bool contracted : {false, true}) {
        const Scanner gpu(contracted);
        const GradientStatsReport got = gpu.scan(view);
        expect_same_report(got, want);
        EXPECT_EQ(got.stats.total_norm, 3.0);
        EXPECT_EQ(got.stats.elements, n);
        EXPECT_EQ(got.reduction_launches, 2U);
        std::vector<std::uint32_t> blocks;
        for (const harness::CallRecord& call : gpu.log->calls) {
            if (call.call == harness::DeviceCall::kLaunch) blocks.push_back(call.shape.blocks);
        }
        EXPECT_EQ(blocks, (std::vector<std::uint32_t>{1024, 1}));
    }
}

}  // namespace
}  // namespace gradguard::testing
