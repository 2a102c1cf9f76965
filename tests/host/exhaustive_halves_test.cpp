// SPDX-License-Identifier: Apache-2.0
// Every bit pattern of F16 and of BF16 through load, unscale and flag, on the virtual device, bit for bit.
#include <gtest/gtest.h>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/devices/virtual_device.h"
#include "kernels/host/adamw.h"
#include "kernels/host/statistics.h"
#include "reference/exact/float_bits.h"
#include "reference/fp64/fp64_norm.h"
#include "reference/model/gradient_view.h"
#include "reference/model/update.h"
#include "tests/support/values.h"

namespace gradguard {
namespace {

constexpr std::uint64_t kPatterns = 65536;
constexpr float kScales[] = {1.0F, 3.0F, 65536.0F, 0x1p-112F, 0x1p-113F, 0x1.fffffep127F};

/// The patterns in order, as a stored gradient.
testing::Gradient all_patterns(DType dtype) {
    std::vector<std::uint16_t> words(kPatterns);
    for (std::size_t i = 0; i < kPatterns; ++i) words[i] = static_cast<std::uint16_t>(i);
    return testing::gradient_of_words(dtype, words);
}

/// A virtual device of its own for each test.
class Halves {
  protected:
    /// `contracted`: which build of the kernels.
    void open(bool contracted) {
        device_ = harness::VirtualDevice::create({});
        device_->set_kernel_source(KernelSource::embedded(contracted));
        queue_ = device_->create_queue();
    }
    Tensor upload(DType dtype, std::span<const std::byte> bytes) const {
        Tensor tensor = Tensor::allocate(queue_, dtype, {bytes.size() / element_bytes(dtype)});
        tensor.upload(bytes);
        return tensor;
    }
    Tensor upload(const std::vector<float>& values) const {
        return upload(DType::kF32, std::as_bytes(std::span(values)));
    }
    std::vector<float> read(const Tensor& tensor) const {
        std::vector<float> values(tensor.elements());
        tensor.download(std::as_writable_bytes(std::span(values)));
        queue_->synchronize();
        return values;
    }
    /// The summaries of each element as a tensor of its own.
    static std::vector<GradientSummary> scan_singly(const Tensor& whole, float scale) {
        std::vector<GradientSummary> summaries;
        constexpr std::uint64_t kTogether = 4096;
        for (std::uint64_t first = 0; first < kPatterns; first += kTogether) {
            std::vector<Tensor> tensors(kTogether, whole);
            for (std::uint64_t i = 0; i < kTogether; ++i) {
                tensors[i].layout.shape = {1};
                tensors[i].layout.byte_offset = (first + i) * element_bytes(whole.layout.dtype);
            }
            const GradientStatsReport report = gradient_stats_sync(tensors, scale);
            summaries.insert(summaries.end(), report.summaries.begin(), report.summaries.end());
        }
        return summaries;
    }

    std::shared_ptr<harness::VirtualDevice> device_;
    std::shared_ptr<Queue> queue_;
};

class ExhaustiveUpdate : public Halves, public ::testing::TestWithParam<DType> {};
class ExhaustiveScan : public Halves, public ::testing::TestWithParam<std::pair<DType, float>> {};

INSTANTIATE_TEST_SUITE_P(AllPatterns, ExhaustiveUpdate, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

std::vector<std::pair<DType, float>> dtypes_and_scales() {
    std::vector<std::pair<DType, float>> all;
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        for (const float scale : kScales) all.emplace_back(dtype, scale);
    }
    return all;
}
INSTANTIATE_TEST_SUITE_P(AllPatterns, ExhaustiveScan, ::testing::ValuesIn(dtypes_and_scales()), [](const auto& test) {
    return std::string(to_string(test.param.first)) + "Scale" + std::to_string(test.index % std::size(kScales));
});

TEST_P(ExhaustiveUpdate, LoadsAndUnscalesEveryPattern) {
    // With beta1 = 0 and m_old = -0, m is g to the bit, the sign of a zero included: -0 + g.
    AdamWOptions options;
    options.beta1 = 0.0F;
    const testing::Gradient gradient = all_patterns(GetParam());
    const std::vector<float> p(kPatterns, 0.5F);
    const std::vector<float> m(kPatterns, -0.0F);
    const std::vector<float> v(kPatterns, 0.25F);
    for (const bool contracted : {false, true}) {
        open(contracted);
        const Tensor gradients = upload(GetParam(), gradient.bytes);
        const AdamWState state{1, upload(m), upload(v), std::nullopt};
        for (const float scale : kScales) {
            const StepControl control{.gradient_scale = scale};
            const AdamWUpdate update = adamw_step(upload(p), gradients, state, options, control);
            const std::vector<float> got_m = read(update.state->first_moment);
            const std::vector<float> got_v = read(update.state->second_moment);
            const std::vector<float> got_p = read(update.parameters);
            const auto c = reference::update_coefficients(options, control, 1.0F, 2);
            for (std::size_t i = 0; i < kPatterns; ++i) {
                const float raw = reference::raw_value(gradient.view(), i);
                ASSERT_TRUE(reference::same_float(got_m[i], reference::unscaled(raw, c.r)))
                    << "pattern " << i << " scale " << scale;
                if (contracted) continue;
                const auto want = reference::update_element(raw, {0.5F, -0.0F, 0.25F, 0.0F}, c);
                ASSERT_TRUE(reference::same_float(got_v[i], want.v)) << "pattern " << i << " scale " << scale;
                ASSERT_TRUE(reference::same_float(got_p[i], want.p)) << "pattern " << i << " scale " << scale;
            }
        }
    }
}

TEST_P(ExhaustiveScan, LoadsUnscalesAndFlagsEveryPatternByItself) {
    const auto [dtype, scale] = GetParam();
    open(true);
    const testing::Gradient gradient = all_patterns(dtype);
    const auto summaries = scan_singly(upload(dtype, gradient.bytes), scale);
    ASSERT_EQ(summaries.size(), kPatterns);
    const float r = reference::reciprocal_scale(scale);
    for (std::size_t i = 0; i < kPatterns; ++i) {
        // Of one element the pair is (|value|, 1), of a zero or a bad one (0, 0).
        const float raw = reference::raw_value(gradient.view(), i);
        const float value = reference::unscaled(raw, r);
        const bool bad = !reference::is_finite_bits(raw) || !reference::is_finite_bits(value);
        const float magnitude = bad ? 0.0F : std::fabs(value);
        ASSERT_EQ(summaries[i].bad, bad ? 1.0F : 0.0F) << "pattern " << i;
        ASSERT_EQ(reference::bits_of(summaries[i].scale), reference::bits_of(magnitude)) << "pattern " << i;
        ASSERT_EQ(summaries[i].sumsq, magnitude == 0.0F ? 0.0F : 1.0F) << "pattern " << i;
    }
}

}  // namespace
}  // namespace gradguard
