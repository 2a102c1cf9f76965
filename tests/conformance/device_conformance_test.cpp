// SPDX-License-Identifier: Apache-2.0
// Every instruction between registers of the virtual GPU's table on a device, beside its exact model: on a GPU this is
// what says whether the models, and so the virtual GPU, are right. The same runs on the virtual driver.
#include <gtest/gtest.h>

#include <optional>
#include <span>

#include "harness/devices/registry.h"
#include "kernels/cuda/cuda_device.h"
#include "reference/contract/error.h"
#include "tests/conformance/check.h"
#include "tests/conformance/instruction_list.h"

namespace gradguard::conformance {
namespace {

constexpr int kParts = 8;  // so that a run that is cut short has said something
constexpr std::size_t kTuples = 1024;
constexpr std::uint32_t kThreads = 256;

class DeviceTarget : public MicroTarget {
  public:
    explicit DeviceTarget(std::shared_ptr<Device> device)
        : device_(std::move(device)), queue_(device_->create_queue()) {}

    void load(const std::string& name, const std::string& ptx) override { module_ = device_->load_module(name, ptx); }

    void run(const std::string& entry, std::uint32_t blocks, const std::vector<Bits>& in,
             std::vector<Bits>& out) override {
        const Buffer from = upload(in);
        const Buffer to = upload(out);
        const auto given = arguments({from.address, to.address, std::uint64_t{blocks} * kThreads * sizeof(Bits)});
        queue_->launch(module_->kernel(entry), {blocks, kThreads}, given, {from, to});
        queue_->copy_to_host(std::as_writable_bytes(std::span(out)), {to, 0, to.bytes});
        queue_->synchronize();
    }

  private:
    Buffer upload(const std::vector<Bits>& cells) const {
        Buffer buffer = device_->allocate(cells.size() * sizeof(Bits), *queue_);
        queue_->copy_to_device({buffer, 0, buffer.bytes}, std::as_bytes(std::span(cells)));
        return buffer;
    }

    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    std::shared_ptr<Module> module_;
};

struct Part {
    std::string device;
    int number;
    std::string name() const { return device + "_" + std::to_string(number); }
};
void PrintTo(const Part& part, std::ostream* out) { *out << part.name(); }

std::vector<Part> parts() {
    std::vector<Part> all;
    for (const char* device : {"vdriver", "cuda"}) {
        for (int number = 0; number < kParts; ++number) all.push_back({device, number});
    }
    return all;
}

class DeviceInstructions : public testing::TestWithParam<Part> {
  protected:
    void SetUp() override {
        try {
            device = std::dynamic_pointer_cast<cuda::CudaDevice>(harness::open_device({.name = GetParam().device}));
        } catch (const harness::DeviceUnavailable& error) {
            GTEST_SKIP() << "blocked: " << error.what();
        }
        ASSERT_NE(device, nullptr);
    }
    /// Why there is nothing to compare on this device.
    std::optional<std::string> left_out(const InstructionModel& model) const {
        if (model.shape != Shape::Lane && model.shape != Shape::Warp) return "it is not between registers";
        const bool approximate = model.results[0].ulps > 0 || model.within;
        if (approximate && !device->driver().hardware()) return "the virtual driver refuses approximate instructions";
        return device->why_not_loadable(module_head(model.name));
    }

    std::shared_ptr<cuda::CudaDevice> device;
};

TEST_P(DeviceInstructions, ReturnWhatTheModelsSay) {
    DeviceTarget target(device);
    const std::vector<std::string> names = instructions_under_test();
    std::size_t checked = 0;
    for (std::size_t i = static_cast<std::size_t>(GetParam().number); i < names.size(); i += kParts) {
        const auto model = find_model(names[i]);
        ASSERT_TRUE(model.has_value()) << names[i];
        if (left_out(*model)) continue;
        ++checked;
        try {
            const CheckResult result = check_registers_on(target, *model, {.tuples = kTuples});
            EXPECT_TRUE(result.passed()) << names[i] << ": " << result.text();
        } catch (const Error& error) {
            ADD_FAILURE() << names[i] << ": " << error.what();
            if (error.site().operand != "load_module") return;  // the context may be lost
        }
    }
    EXPECT_GT(checked, 100U);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, DeviceInstructions, testing::ValuesIn(parts()),
                         [](const auto& part) { return part.param.name(); });

}  // namespace
}  // namespace gradguard::conformance
