// SPDX-License-Identifier: Apache-2.0
// The contract's rules, defaults and geometry are written twice, in the oracle and in the library. Here both are held
// against each other and against literals.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "kernels/host/guarded_adamw.h"
#include "kernels/host/launch_plan.h"
#include "reference/contract/constants.h"
#include "reference/model/statistics.h"
#include "reference/model/validation.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using testing::bits;
using testing::RecordedDevice;

TEST(Agreement, DefaultsAreTheContracts) {
    const AdamWOptions options;
    EXPECT_EQ(bits(options.learning_rate), 0x3A83126FU);  // 1e-3
    EXPECT_EQ(bits(options.beta1), 0x3F666666U);          // 0.9
    EXPECT_EQ(bits(options.beta2), 0x3F7FBE77U);          // 0.999
    EXPECT_EQ(bits(options.epsilon), 0x3727C5ACU);        // 1e-5
    EXPECT_EQ(bits(options.weight_decay), 0x38D1B717U);   // 1e-4
    EXPECT_FALSE(options.amsgrad);
    EXPECT_FALSE(options.maximize);
    EXPECT_EQ(StepControl{}.gradient_scale, 1.0F);
    EXPECT_FALSE(StepControl{}.skip_update);
    const GradientGuardOptions guard;
    EXPECT_EQ(guard.max_norm, 1.0F);
    EXPECT_EQ(bits(guard.epsilon), 0x358637BDU);  // 1e-6
    EXPECT_EQ(guard.nonfinite, NonFinitePolicy::kSkip);
}

TEST(Agreement, GeometryIsTheContracts) {
    EXPECT_EQ(kThreadsPerBlock, 256U);
    EXPECT_EQ(kTripleBytes, 12U);
    EXPECT_EQ(kReductionSharedBytes, 3072U);
    struct Row {
        std::uint64_t elements;
        std::uint32_t limit, blocks, launches;
        std::uint64_t scratch;
    };
    const Row rows[] = {{1, 1024, 1, 1, 12},
                        {1024, 1024, 1, 1, 12},
                        {1025, 1024, 2, 2, 36},
                        {65537, 1024, 65, 2, 792},
                        {1048576, 1024, 1024, 2, 12300},
                        {1048577, 2147483647, 1024, 2, 12300},
                        {(1U << 30U) - 1, 65535, 1024, 2, 12300},
                        {1048576, 1, 1, 1, 12},
                        {1048576, 7, 7, 2, 96}};
    for (const Row& row : rows) {
        EXPECT_EQ(kernels::reduction_blocks(row.elements, row.limit), row.blocks);
        EXPECT_EQ(reference::reduction_blocks(row.elements, row.limit), row.blocks);
        EXPECT_EQ(kernels::reduction_launches(row.blocks), row.launches);
        EXPECT_EQ(kernels::reduction_scratch_bytes(row.blocks), row.scratch);
    }
}

/// Draws groups that break at most `damages` rules; no device call is ever made with them.
class GroupDraw {
  public:
    GroupDraw(const RecordedDevice& gpu, std::uint64_t seed)
        : random_(seed), gpu_(gpu), other_queue_(gpu.device->create_queue()) {}

    std::size_t below(std::size_t n) { return random_() % n; }

    void draw(std::size_t damages) {
        entries.clear();
        options = {};
        control = {};
        guard = {};
        options.amsgrad = below(2) == 0;
        control.skip_update = below(4) == 0;
        const std::size_t count = 1 + below(4);
        for (std::size_t i = 0; i < count; ++i) entries.push_back(entry());
        for (std::size_t i = 0; i < damages; ++i) damage();
    }

    std::vector<AdamWEntry> entries;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;

  private:
    Tensor tensor(const std::vector<std::uint64_t>& shape, DType dtype) {
        return Tensor::over(gpu_.queue, dtype, shape, Buffer::borrowed(1U << 20U, 4096));
    }

    AdamWEntry entry() {
        std::vector<std::uint64_t> shape(below(4));
        for (auto& dimension : shape) dimension = below(5);
        AdamWEntry fresh = {tensor(shape, DType::kF32), tensor(shape, kAllDTypes[below(3)]), std::nullopt};
        if (below(2) == 0) {
            fresh.state =
                AdamWState{1 + below(9), tensor(shape, DType::kF32), tensor(shape, DType::kF32), std::nullopt};
            if (options.amsgrad) fresh.state->max_second_moment = tensor(shape, DType::kF32);
        }
        return fresh;
    }

    Tensor& operand(AdamWEntry& entry) {
        switch (below(entry.state ? 5 : 2)) {
            case 0:
                return entry.parameters;
            case 1:
                return entry.gradients;
            case 2:
                return entry.state->first_moment;
            case 3:
                return entry.state->second_moment;
            default:
                return entry.state->max_second_moment ? *entry.state->max_second_moment : entry.state->first_moment;
        }
    }

    void damage() {
        AdamWEntry& entry = entries[below(entries.size())];
        Tensor& victim = operand(entry);
        auto& layout = victim.layout;
        constexpr auto kLast = std::numeric_limits<std::uint64_t>::max();
        const float odd[] = {-1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                             1.0F, 0.0F};
        switch (below(16)) {
            case 0:
                layout.dtype = kAllDTypes[below(3)];
                break;
            case 1:
                layout.shape.push_back(below(2) == 0 ? 0x100000000 : 3);
                break;
            case 2:
                layout.shape.insert(layout.shape.begin(), 1U << 30U);
                layout.strides.insert(layout.strides.begin(), 1);
                break;
            case 3:
                if (!layout.strides.empty()) layout.strides[below(layout.strides.size())] += 1;
                break;
            case 4:
                layout.strides.push_back(1);
                break;
            case 5:
                layout.byte_offset = 1 + below(7);
                break;
            case 6:
                layout.byte_offset = below(2) == 0 ? 4096 : kLast - 3;
                break;
            case 7:
                victim.storage.bytes = below(64);
                break;
            case 8:
                victim.queue = other_queue_;
                break;
            case 9:
                layout.shape.push_back(1);
                layout.strides.push_back(static_cast<std::int64_t>(below(9)));
                break;
            case 10:
                if (entry.state) entry.state->step = below(2) == 0 ? 0 : kLast;
                break;
            case 11:
                if (entry.state) entry.state->max_second_moment.reset();
                break;
            case 12:
                options.beta1 = odd[below(5)];
                break;
            case 13:
                control.gradient_scale = odd[below(5)];
                break;
            case 14:
                guard.max_norm = odd[below(5)];
                break;
            default:
                layout.shape.assign({0xFFFFFFFF, 0xFFFFFFFF, 2, 0});
                layout.strides.assign(4, 1);
                break;
        }
    }

    std::mt19937_64 random_;
    const RecordedDevice& gpu_;
    std::shared_ptr<Queue> other_queue_;
};

reference::TensorDescription describe(const Tensor& tensor) {
    return {tensor.layout, tensor.storage.bytes, 0, reinterpret_cast<std::uintptr_t>(tensor.queue.get())};
}

std::vector<reference::EntryDescription> describe(const std::vector<AdamWEntry>& entries) {
    std::vector<reference::EntryDescription> descriptions;
    for (const AdamWEntry& entry : entries) {
        reference::EntryDescription description = {describe(entry.parameters), describe(entry.gradients), std::nullopt};
        if (entry.state) {
            description.state = reference::StateDescription{entry.state->step, describe(entry.state->first_moment),
                                                            describe(entry.state->second_moment), std::nullopt};
            if (entry.state->max_second_moment) {
                description.state->max_second_moment = describe(*entry.state->max_second_moment);
            }
        }
        descriptions.push_back(std::move(description));
    }
    return descriptions;
}

/// The library's verdict; a group that passes must not reach the device, so the device refuses every allocation.
std::optional<Error> library_verdict(const GroupDraw& group) {
    try {
        guarded_adamw_step(group.entries, group.options, group.control, group.guard);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::kDeviceFailure) return error;
    }
    return std::nullopt;
}

class RefuseAllocations : public harness::DeviceHook {
  public:
    void before(const harness::CallRecord&) override {
        throw Error(ErrorKind::kDeviceFailure, {.operand = "test"}, "no call is expected to get through");
    }
};

TEST(Agreement, OracleAndLibraryRefuseTheSameGroups) {
    const RecordedDevice gpu(false, 1, {std::make_shared<RefuseAllocations>()});
    GroupDraw group(gpu, 2024);
    std::size_t refused = 0;
    for (int i = 0; i < 30000; ++i) {
        const std::size_t damages = group.below(3);
        group.draw(damages);
        const auto want = reference::validate_step(describe(group.entries), group.options, group.control, group.guard);
        const auto got = library_verdict(group);
        ASSERT_EQ(got.has_value(), want.has_value())
            << "case " << i << ": " << (got ? got->what() : "accepted") << " | " << (want ? want->message : "accepted");
        if (!want) continue;
        ++refused;
        EXPECT_EQ(got->site().entry, want->site.entry) << "case " << i << ": " << got->what() << " | " << want->message;
        // Where one entry breaks two rules, which one is named is not promised.
        if (damages == 1) {
            EXPECT_EQ(to_string(got->kind()), to_string(want->kind)) << got->what() << " | " << want->message;
            EXPECT_EQ(got->site().operand, want->site.operand) << got->what() << " | " << want->message;
        }
    }
    EXPECT_GT(refused, 10000U);
}

}  // namespace
}  // namespace gradguard
