// SPDX-License-Identifier: Apache-2.0
// Every bit pattern of F16 and of BF16 through load, unscale and flag, bit for bit.
#include <utility>

#include "kernels/host/statistics.h"
#include "property_tests/hardware/hardware_test.h"
#include "reference/exact/float_bits.h"
#include "reference/fp64/coefficients.h"
#include "reference/fp64/fp64_norm.h"
#include "reference/model/statistics.h"
#include "reference/model/update.h"
#include "tests/support/values.h"

namespace gradguard::testing {
namespace {

constexpr std::uint64_t kPatterns = 65536;
constexpr float kScales[] = {1.0F, 3.0F, 65536.0F, 0x1p-112F, 0x1p-113F, 0x1.fffffep127F};

class HardwareHalves : public Hardware {
  protected:
    /// The patterns in order, as a stored gradient.
    static Gradient all_patterns(DType dtype) {
        std::vector<std::uint16_t> words(kPatterns);
        for (std::size_t i = 0; i < kPatterns; ++i) words[i] = static_cast<std::uint16_t>(i);
        return gradient_of_words(dtype, words);
    }
    static constexpr std::uint64_t kPiece = 64;
    /// `count` patterns of `whole` from `first` on.
    static Tensor part(const Tensor& whole, std::uint64_t first, std::uint64_t count) {
        Tensor tensor = whole;
        tensor.layout.shape = {count};
        tensor.layout.byte_offset = first * element_bytes(whole.layout.dtype);
        return tensor;
    }

    /// All patterns, each piece of them as a tensor, a lane for each pattern: the tree's bits.
    static void expect_oracles_pieces(const Gradient& all, const Tensor& whole, float scale) {
        std::vector<Tensor> tensors;
        std::vector<reference::GradientView> views;
        for (std::uint64_t first = 0; first < kPatterns; first += kPiece) {
            tensors.push_back(part(whole, first, kPiece));
            views.push_back({all.dtype, all.bytes.data() + first * element_bytes(all.dtype), kPiece});
        }
        EXPECT_EQ(difference(gradient_stats_sync(tensors, scale), reference::group_statistics(views, scale)), "");
    }

    /// The good patterns, and the numbers of the bad ones.
    static std::pair<Gradient, std::vector<std::uint64_t>> split(const Gradient& all, float scale) {
        const float r = reference::reciprocal_scale(scale);
        std::vector<std::uint16_t> good;
        std::vector<std::uint64_t> bad;
        for (std::uint64_t i = 0; i < kPatterns; ++i) {
            const float raw = reference::raw_value(all.view(), i);
            if (reference::is_finite_bits(raw) && reference::is_finite_bits(reference::unscaled(raw, r))) {
                good.push_back(static_cast<std::uint16_t>(i));
            } else {
                bad.push_back(i);
            }
        }
        return {gradient_of_words(all.dtype, good), bad};
    }

    /// Where unscaling makes very many of them bad, one of 16.
    static void expect_each_flagged(const std::vector<std::uint64_t>& bad, const Tensor& whole, float scale) {
        std::vector<Tensor> tensors;
        const std::size_t step = bad.size() > 4096 ? 16 : 1;
        for (std::size_t i = 0; i < bad.size(); i += step) tensors.push_back(part(whole, bad[i], 1));
        const GradientStatsReport report = gradient_stats_sync(tensors, scale);
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const GradientSummary& summary = report.summaries[i];
            ASSERT_EQ(summary.bad, 1.0F) << "pattern " << bad[i * step];
            ASSERT_EQ(bits(summary.scale) + bits(summary.sumsq), 0U) << "pattern " << bad[i * step];
        }
    }
};
GRADGUARD_ON_HARDWARE(HardwareHalves);

TEST_P(HardwareHalves, AreLoadedAndUnscaledByTheUpdate) {
    // With beta1 = 0 and m_old = -0, m is g to the bit, the sign of a zero included: -0 + g.
    const AdamWOptions options = {.beta1 = 0.0F};
    const std::vector<float> p(kPatterns, 0.5F);
    const std::vector<float> m(kPatterns, -0.0F);
    const std::vector<float> v(kPatterns, 0.25F);
    const AdamWState state{1, upload(queue, m), upload(queue, v), std::nullopt};
    const Tensor parameters = upload(queue, p);
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        const Gradient gradient = all_patterns(dtype);
        const Tensor gradients = upload(queue, dtype, gradient.bytes);
        for (const float scale : kScales) {
            const StepControl control{.gradient_scale = scale};
            const auto got = download(adamw_step(parameters, gradients, state, options, control));
            const auto c = reference::update_coefficients(options, control, 1.0F, 2);
            for (std::size_t i = 0; i < kPatterns; ++i) {
                const float raw = reference::raw_value(gradient.view(), i);
                const auto want = reference::update_element(raw, {0.5F, -0.0F, 0.25F, 0.0F}, c);
                ASSERT_TRUE(reference::same_float(got.state->first_moment[i], reference::unscaled(raw, c.r)))
                    << "pattern " << i << " scale " << scale;
                ASSERT_TRUE(reference::same_float(got.state->second_moment[i], want.v))
                    << "pattern " << i << " scale " << scale;
                ASSERT_TRUE(reference::same_float(got.parameters[i], want.p)) << "pattern " << i << " scale " << scale;
            }
        }
    }
}

TEST_P(HardwareHalves, AreLoadedUnscaledAndFlaggedByTheScan) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        const Gradient all = all_patterns(dtype);
        const Tensor whole = upload(queue, dtype, all.bytes);
        for (const float scale : kScales) {
            SCOPED_TRACE(std::string(to_string(dtype)) + " scale " + std::to_string(scale));
            expect_oracles_pieces(all, whole, scale);
            const auto [good, bad] = split(all, scale);
            // Together no good one raises the flag, and each bad one does by itself.
            const GradientStatsReport together =
                gradient_stats_sync(std::vector<Tensor>{upload(queue, dtype, good.bytes)}, scale);
            EXPECT_TRUE(together.stats.all_finite);
            EXPECT_EQ(together.stats.elements, good.elements);
            expect_each_flagged(bad, whole, scale);
        }
    }
}

}  // namespace
}  // namespace gradguard::testing
