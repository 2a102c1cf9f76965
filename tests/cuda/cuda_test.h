// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/host/adamw.h"
#include "kernels/host/tensor.h"
#include "reference/contract/error.h"
#include "tests/cuda/watched_driver.h"
#include "tests/support/error_of.h"

namespace gradguard::testing {

/// The library of the virtual driver, loaded once, and its own functions (harness/vdriver/control.h).
class VirtualDriver {
  public:
    static VirtualDriver& instance();
    /// Everything starts anew with this configuration.
    void restart(const std::string& configuration) const;
    nlohmann::json report() const;
    const std::string& library() const { return library_; }

  private:
    VirtualDriver();
    std::string library_;
    int (*configure_)(const char*);
    std::size_t (*report_)(char*, std::size_t);
    void (*reset_)();
};

/// Tests of the CUDA device over the virtual driver. Each starts with a new driver that all observers watch; at its end
/// nothing that the device took from the driver may be left, and nothing may have been found.
class CudaTest : public ::testing::Test {
  protected:
    void SetUp() override { restart(1); }
    void TearDown() override;

    /// A new driver with this seed, which says when queued work runs, and with more of its configuration.
    void restart(std::uint64_t seed, const nlohmann::json& more = nlohmann::json::object());
    std::shared_ptr<cuda::CudaDevice> open(cuda::CudaDeviceOptions options = {}) const;
    /// The test plants a fault in what a kernel is given.
    void expect_findings() { findings_expected_ = true; }
    /// Checks now what TearDown() checks at the end. Everything of the device must be gone.
    void expect_nothing_left() const;

    std::unique_ptr<WatchedDriver> watched_;

  private:
    bool findings_expected_ = false;
};

template <typename Value>
Tensor upload(const std::shared_ptr<Queue>& queue, const std::vector<Value>& values, DType dtype = DType::kF32) {
    Tensor tensor = Tensor::allocate(queue, dtype, {values.size()});
    tensor.upload(std::as_bytes(std::span(values)));
    return tensor;
}

inline std::vector<float> download(const Tensor& tensor) {
    std::vector<float> values(tensor.elements());
    tensor.download(std::as_writable_bytes(std::span(values)));
    tensor.queue->synchronize();
    return values;
}

/// Expects DeviceFailure with this operand and these words in its message.
template <class Action>
void expect_failure(const std::string& operand, const std::vector<std::string>& words, Action action) {
    const auto error = error_of(action);
    if (!error) return;
    EXPECT_EQ(to_string(error->kind()), "DeviceFailure") << error->what();
    EXPECT_EQ(error->site().operand, operand) << error->what();
    for (const std::string& word : words) {
        EXPECT_NE(error->message().find(word), std::string::npos) << word << " in: " << error->what();
    }
}

}  // namespace gradguard::testing
