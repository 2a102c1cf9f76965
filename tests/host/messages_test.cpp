// SPDX-License-Identifier: Apache-2.0
// Every message of the library in full: which entry, which operand, what was wanted, what came.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/host/guarded_adamw.h"
#include "kernels/host/option_rules.h"
#include "kernels/host/summary.h"
#include "kernels/host/validation.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using testing::RecordedDevice;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// What the action's error says.
template <class Action>
std::string said(Action action) {
    const auto error = testing::error_of(action);
    return error ? error->what() : "";
}

/// A group whose second entry is what `damage` makes of one with shape [2,3] and step 3.
std::string said_of_entry(const std::function<void(const RecordedDevice&, AdamWEntry&)>& damage, bool amsgrad = false) {
    const RecordedDevice gpu;
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    const auto tensor = [&] { return gpu.tensor(values, DType::kF32, {{2, 3}}); };
    AdamWEntry entry = {tensor(), tensor(), AdamWState{3, tensor(), tensor(), std::nullopt}};
    std::vector<AdamWEntry> entries(2, entry);
    if (amsgrad) {
        for (AdamWEntry& each : entries) each.state->max_second_moment = tensor();
    }
    damage(gpu, entries[1]);
    return said([&] { guarded_adamw_step(entries, {.amsgrad = amsgrad}); });
}

std::string said_of_shape(const std::vector<std::uint64_t>& shape) {
    return said_of_entry([&](const RecordedDevice&, AdamWEntry& entry) { entry.parameters.layout.shape = shape; });
}

TEST(Messages, OfDtypes) {
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.parameters.layout.dtype = DType::kF16; }),
              "InvalidTensor: entry 1 parameters: want dtype F32, got F16");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.state->second_moment.layout.dtype = DType::kBF16; }),
              "InvalidTensor: entry 1 second_moment: want dtype F32, got BF16");
}

TEST(Messages, OfCounts) {
    EXPECT_EQ(said_of_shape({4294967296, 0}),
              "InvalidTensor: entry 1 parameters: want each dimension <= 4294967295, got shape [4294967296,0]");
    EXPECT_EQ(said_of_shape({4294967295, 4294967295, 2}),
              "InvalidTensor: entry 1 parameters: want an element count that fits in 64 bits, got shape "
              "[4294967295,4294967295,2]");
    EXPECT_EQ(said_of_shape({32768, 32768}),
              "InvalidTensor: entry 1 parameters: want at most 1073741823 elements, got shape [32768,32768]");
}

TEST(Messages, OfShapes) {
    const auto turned = [](Tensor& tensor) {
        tensor.layout.shape = {3, 2};
        tensor.layout.strides = {2, 1};
    };
    EXPECT_EQ(said_of_entry([&](auto&, AdamWEntry& e) { turned(e.gradients); }),
              "ShapeMismatch: entry 1 gradients: want the parameters' shape [2,3], got [3,2]");
    EXPECT_EQ(said_of_entry([&](auto&, AdamWEntry& e) { turned(e.state->first_moment); }),
              "ShapeMismatch: entry 1 first_moment: want the parameters' shape [2,3], got [3,2]");
}

TEST(Messages, OfLayouts) {
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.gradients.layout.strides = {1}; }),
              "InvalidTensor: entry 1 gradients: want one stride for each dimension of [2,3], got strides [1]");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) {
                  e.gradients.layout.strides = {1, -2};
              }),
              "InvalidTensor: entry 1 gradients: want dense contiguous strides for shape [2,3], got [1,-2]");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.gradients.layout.byte_offset = 3; }),
              "InvalidTensor: entry 1 gradients: want a byte offset that is a multiple of 4, got 3");
    EXPECT_EQ(
        said_of_entry([](auto&, AdamWEntry& e) { e.gradients.layout.byte_offset = 4; }),
        "InvalidTensor: entry 1 gradients: want offset 4 plus 24 bytes inside the allocation, got one of 24 bytes");
}

TEST(Messages, OfQueues) {
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.gradients.queue = nullptr; }),
              "DifferentExecutionQueue: entry 1 gradients: want a device and queue, got none");
    EXPECT_EQ(
        said_of_entry([](const RecordedDevice& gpu, AdamWEntry& e) { e.gradients.queue = gpu.device->create_queue(); }),
        "DifferentExecutionQueue: entry 1 gradients: want one device and queue for the whole group, got another "
        "queue of the same device");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.gradients.queue = RecordedDevice().queue; }),
              "DifferentExecutionQueue: entry 1 gradients: want one device and queue for the whole group, got another "
              "device");
}

TEST(Messages, OfStates) {
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.state->step = 0; }),
              "InvalidState: entry 1 step: want at least 1 completed step, got 0");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.state->step = std::numeric_limits<std::uint64_t>::max(); }),
              "StepOverflow: entry 1 step: want step + 1 to fit in 64 bits, got 18446744073709551615");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.state->max_second_moment.reset(); }, true),
              "InvalidState: entry 1 max_second_moment: want it present with AMSGrad, got none");
    EXPECT_EQ(said_of_entry([](auto&, AdamWEntry& e) { e.state->max_second_moment = e.state->second_moment; }),
              "InvalidState: entry 1 max_second_moment: want none without AMSGrad, got one");
}

TEST(Messages, OfDevices) {
    DeviceProperties properties = {"small", 256, 256, 1, 3072};
    const auto said_of_device = [&] {
        const RecordedDevice gpu(false, 1, {}, properties);
        const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
        return said([&] { guarded_adamw_step(entries); });
    };
    properties.max_threads_per_block = 255;
    EXPECT_EQ(said_of_device(), "UnsupportedDevice: device: want 256 threads in a block, got 255 on small");
    properties = {"small", 256, 128, 1, 3072};
    EXPECT_EQ(said_of_device(), "UnsupportedDevice: device: want 256 threads in x, got 128 on small");
    properties = {"small", 256, 256, 0, 3072};
    EXPECT_EQ(said_of_device(), "UnsupportedDevice: device: want 1 block in x, got 0 on small");
    properties = {"small", 256, 256, 1, 3071};
    EXPECT_EQ(said_of_device(),
              "UnsupportedDevice: device: want 3072 bytes of shared memory in a block, got 3071 on small");
}

TEST(Messages, OfSeveralLimitsNameThemInTheContractsOrder) {
    DeviceProperties properties = {"small", 1, 1, 0, 0};
    const auto said_of_device = [&] { return said([&] { kernels::validate_device(properties, true); }); };
    EXPECT_EQ(said_of_device(), "UnsupportedDevice: device: want 256 threads in a block, got 1 on small");
    properties.max_threads_per_block = 256;
    EXPECT_EQ(said_of_device(), "UnsupportedDevice: device: want 256 threads in x, got 1 on small");
    properties.max_threads_in_x = 256;
    EXPECT_EQ(said_of_device(), "UnsupportedDevice: device: want 1 block in x, got 0 on small");
}

TEST(Messages, OfOptions) {
    using kernels::validate;
    const auto said_of = [](const auto& options) { return said([&] { validate(options); }); };
    EXPECT_EQ(said_of(AdamWOptions{.learning_rate = -0.1F}),
              "InvalidOption: learning_rate: want finite and >= 0, got -0.1");
    EXPECT_EQ(said_of(AdamWOptions{.beta1 = 1.0F}), "InvalidOption: beta1: want finite and in [0, 1), got 1");
    EXPECT_EQ(said_of(AdamWOptions{.beta2 = kNan}), "InvalidOption: beta2: want finite and in [0, 1), got nan");
    EXPECT_EQ(said_of(AdamWOptions{.epsilon = 0.0F}), "InvalidOption: epsilon: want finite and > 0, got 0");
    EXPECT_EQ(said_of(AdamWOptions{.weight_decay = kInfinity}),
              "InvalidOption: weight_decay: want finite and >= 0, got inf");
    EXPECT_EQ(said_of(AdamWOptions{.learning_rate = 1e30F, .weight_decay = 1e30F}),
              "InvalidOption: weight_decay: want a finite FP32 product with learning_rate, got inf");
    EXPECT_EQ(said_of(StepControl{.gradient_scale = -2.5F}),
              "InvalidOption: gradient_scale: want finite and > 0, got -2.5");
    EXPECT_EQ(said_of(StepControl{.gradient_scale = 0x1p-128F}),
              "InvalidOption: gradient_scale: want a finite FP32 reciprocal, got 2.938736e-39");
    EXPECT_EQ(said_of(GradientGuardOptions{.max_norm = -1.0F}),
              "InvalidOption: max_norm: want absent, or finite and >= 0, got -1");
    EXPECT_EQ(said_of(GradientGuardOptions{.epsilon = kInfinity}),
              "InvalidOption: guard_epsilon: want finite and > 0, got inf");
    EXPECT_EQ(said([] { clipped_adamw_step({.clip_multiplier = 1.5F}, {}); }),
              "InvalidOption: clip_multiplier: want a value in [0, 1], got 1.5");
}

TEST(Messages, OfSeveralOptionsNameTheFirstThatIsDeclared) {
    AdamWOptions options = {
        .learning_rate = -1.0F, .beta1 = 1.0F, .beta2 = 1.0F, .epsilon = 0.0F, .weight_decay = -1.0F};
    const auto operand = [&] { return testing::error_of([&] { kernels::validate(options); })->site().operand; };
    EXPECT_EQ(operand(), "learning_rate");
    options.learning_rate = 1.0F;
    EXPECT_EQ(operand(), "beta1");
    options.beta1 = 0.5F;
    EXPECT_EQ(operand(), "beta2");
    options.beta2 = 0.5F;
    EXPECT_EQ(operand(), "epsilon");
    options.epsilon = 1.0F;
    EXPECT_EQ(operand(), "weight_decay");
    EXPECT_EQ(said([] { kernels::validate(StepControl{.gradient_scale = 0.0F}); }),
              "InvalidOption: gradient_scale: want finite and > 0, got 0");
}

TEST(Messages, NumbersAreTheShortestTextThatReadsBack) {
    EXPECT_EQ(kernels::number_to_string(0.1F), "0.1");
    EXPECT_EQ(kernels::number_to_string(0.1), "0.1");
    EXPECT_EQ(kernels::number_to_string(double{0.1F}), "0.10000000149011612");
    EXPECT_EQ(kernels::number_to_string(-0x1.fffffffffffffp-1022), "-4.4501477170144023e-308");
}

TEST(Messages, OfDecisions) {
    EXPECT_EQ(said([] { decide({.total_norm = -1.5}); }), "InvalidSummary: total_norm: want a norm >= 0, got -1.5");
    EXPECT_EQ(said([] { decide({.all_finite = false}, {.nonfinite = NonFinitePolicy::kError}); }),
              "NonFiniteGradients: gradients: want finite gradients, got a NaN or an infinity in the group");
}

TEST(Messages, OfSummaries) {
    const auto said_of = [](const GradientSummary& summary) {
        kernels::SummaryTotals totals;
        totals.add(0, {1.0F, 1.0F, 0.0F}, 2);
        return said([&] { totals.add(4, summary, std::numeric_limits<std::uint64_t>::max() - 1); });
    };
    const std::string want = "InvalidSummary: entry 4 summary: want ";
    const std::string scale = want + "a scale that is finite and >= 0, got ";
    EXPECT_EQ(said_of({-1.0F, 1.0F, 0.0F}), scale + "(-1, 1, 0)");
    EXPECT_EQ(said_of({kInfinity, 1.0F, 0.0F}), scale + "(inf, 1, 0)");
    EXPECT_EQ(said_of({kNan, 1.0F, 0.0F}), scale + "(nan, 1, 0)");
    const std::string sumsq = want + "a sumsq that is finite and >= 0, got ";
    EXPECT_EQ(said_of({1.0F, -1.0F, 0.0F}), sumsq + "(1, -1, 0)");
    EXPECT_EQ(said_of({1.0F, kInfinity, 0.0F}), sumsq + "(1, inf, 0)");
    EXPECT_EQ(said_of({0.0F, kNan, 0.0F}), sumsq + "(0, nan, 0)");
    EXPECT_EQ(said_of({1.0F, 1.0F, 0.5F}), want + "a flag that is exactly 0 or 1, got (1, 1, 0.5)");
    EXPECT_EQ(said_of({0.0F, 1.0F, 0.0F}), want + "sumsq 0 with scale 0, got (0, 1, 0)");
    EXPECT_EQ(said_of({2.0F, 0.5F, 0.0F}), want + "sumsq >= 1 with scale > 0, got (2, 0.5, 0)");
    EXPECT_EQ(said_of({2.0F, 1.0F, 0.0F}), want + "an element count that fits in 64 bits, got (2, 1, 0)");
}

TEST(Messages, OfReadbacks) {
    const auto said_of = [](const std::function<void(std::vector<std::vector<std::byte>>&)>& tamper) {
        const RecordedDevice gpu(false, 1, {std::make_shared<harness::TamperReadback>(tamper)});
        const std::vector<Tensor> gradients = {gpu.tensor(std::vector<float>{3.0F}),
                                               gpu.tensor(std::vector<float>{4.0F})};
        return said([&] { gradient_stats_sync(gradients); });
    };
    EXPECT_EQ(said_of([](auto& payload) { payload[1].pop_back(); }),
              "InvalidSummary: entry 1 summary: want 12 bytes, got 11");
    EXPECT_EQ(said_of([](auto& payload) { payload.pop_back(); }), "InvalidSummary: readback: want 2 summaries, got 1");
}

TEST(Messages, OfHostMemory) {
    const RecordedDevice gpu;
    const Tensor tensor = gpu.tensor(std::vector<float>{1.0F, 2.0F});
    std::vector<std::byte> bytes(12);
    EXPECT_EQ(said([&] { tensor.download(bytes); }), "InvalidTensor: host memory: want 8 bytes for shape [2], got 12");
}

}  // namespace
}  // namespace gradguard
