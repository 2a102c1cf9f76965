// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/devices/hooked_device.h"
#include "harness/devices/virtual_device.h"
#include "harness/observers/registry.h"
#include "kernels/host/adamw.h"
#include "reference/contract/error.h"
#include "tests/support/compiler_under_test.h"
#include "tests/support/error_of.h"

namespace gradguard::testing {

inline std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float from_bits(std::uint32_t word) { return std::bit_cast<float>(word); }

/// What the observers of all devices of this test program have checked together, and what they ought to have.
class Watch {
  public:
    static Watch& instance() {
        static Watch watch;
        return watch;
    }
    void add(const std::vector<observers::Checked>& checked) { observers::add_checked(total_, checked); }
    /// Names of observers that nothing was checked by; all of them when none was ever attached.
    std::vector<std::string> idle() const {
        return total_.empty() ? observers::observer_names() : observers::checked_nothing(total_);
    }

  private:
    std::vector<observers::Checked> total_;
};

/// A virtual GPU whose calls are recorded, with one queue and the chosen build of the kernels. Every observer watches
/// it, no kernel may write to what tensor() uploads, and at its end any finding fails the test. Tensors of the device
/// must be gone by then: those that are not have leaked.
class RecordedDevice {
  public:
    explicit RecordedDevice(bool contracted = false, std::uint64_t seed = 1,
                            std::vector<std::shared_ptr<harness::DeviceHook>> more_hooks = {},
                            std::optional<DeviceProperties> properties = std::nullopt) {
        harness::VirtualDeviceOptions options;
        options.machine.seed = seed;
        options.observers = "all";
        inner = harness::VirtualDevice::create(options);
        inner->set_kernel_source(kernels_under_test(contracted));
        more_hooks.insert(more_hooks.begin(), log);
        device = harness::hook_device(inner, std::move(more_hooks), std::move(properties));
        queue = device->create_queue();
    }

    RecordedDevice(const RecordedDevice&) = delete;
    RecordedDevice& operator=(const RecordedDevice&) = delete;

    ~RecordedDevice() {
        try {
            if (queue) queue->synchronize();  // buffers live as long as submitted work needs them
        } catch (const Error&) {
            // A device that was made to fail; what it has against a kernel comes next.
        }
        Watch::instance().add(inner->checked());
        const std::vector<vgpu::Finding> findings = inner->final_findings();
        EXPECT_EQ(findings.size(), expected_findings_);
        if (expected_findings_ != 0) return;
        for (const vgpu::Finding& finding : findings) ADD_FAILURE() << finding.message();
    }

    /// The test plants a fault: so many findings, no more and no less.
    void expect_findings(std::size_t count) const { expected_findings_ = count; }

    /// A dense tensor that holds `values` (float for F32, the bit patterns for F16 and BF16).
    template <class Value>
    Tensor tensor(const std::vector<Value>& values, DType dtype = DType::kF32,
                  std::optional<std::vector<std::uint64_t>> shape = std::nullopt) const {
        Tensor tensor = Tensor::allocate(queue, dtype, shape.value_or(std::vector<std::uint64_t>{values.size()}));
        tensor.upload(std::as_bytes(std::span(values)));
        inputs_.push_back(inner->mark_read_only({tensor.storage, 0, tensor.storage.bytes}));
        return tensor;
    }

    AdamWEntry entry(const std::vector<float>& parameters, const std::vector<float>& gradients) const {
        return {tensor(parameters), tensor(gradients), std::nullopt};
    }

    AdamWState state(std::uint64_t step, const std::vector<float>& first, const std::vector<float>& second) const {
        return {step, tensor(first), tensor(second), std::nullopt};
    }

    /// Reads a whole tensor; waits.
    std::vector<float> read(const Tensor& tensor) const {
        std::vector<float> values(tensor.elements());
        tensor.download(std::as_writable_bytes(std::span(values)));
        queue->synchronize();
        return values;
    }

    /// Forgets the calls made so far, such as those that set the inputs up; finishes them first.
    void forget_calls() const {
        queue->synchronize();
        log->calls.clear();
    }

    std::shared_ptr<harness::CallLog> log = std::make_shared<harness::CallLog>();
    std::shared_ptr<harness::VirtualDevice> inner;
    std::shared_ptr<Device> device;
    std::shared_ptr<Queue> queue;

  private:
    mutable std::vector<std::shared_ptr<const void>> inputs_;
    mutable std::size_t expected_findings_ = 0;
};

/// Expects an error of this kind at this site.
template <class Action>
void expect_error(ErrorKind kind, std::optional<std::size_t> entry, const std::string& operand, Action action) {
    const auto error = error_of(action);
    if (!error) return;
    EXPECT_EQ(to_string(error->kind()), to_string(kind)) << error->what();
    EXPECT_EQ(error->site().entry, entry) << error->what();
    EXPECT_EQ(error->site().operand, operand) << error->what();
    EXPECT_FALSE(error->message().empty());
}

}  // namespace gradguard::testing
