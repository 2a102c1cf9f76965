// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "harness/subjects/subject.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/host/guarded_adamw.h"
#include "reference/contract/error.h"
#include "reference/model/guarded_step.h"

namespace gradguard::testing {

/// What a test of the hardware suite runs on. The same tests run on a GPU and on the virtual driver.
struct Setup {
    std::string device;    ///< "cuda" or "vdriver".
    std::string compiler;  ///< Of the kernels: "ptx" or "nvrtc".

    std::string name() const { return device + "_" + compiler; }
};
inline void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name(); }

/// Both devices with both compilers.
std::vector<Setup> setups();

/// A test that is blocked, with the reason, where its device or compiler is missing. Its device is the one that the
/// registry opens by name; at the end its observers (none on a GPU) must have nothing against the kernels.
class Hardware : public ::testing::TestWithParam<Setup> {
  protected:
    void SetUp() override;
    void TearDown() override;

    /// One more device over the same driver.
    std::shared_ptr<cuda::CudaDevice> open(cuda::CudaDeviceOptions options = {}, bool contracted = false) const;
    const cuda::DriverFunctions& driver() const { return device->driver().functions(); }
    std::string driver_library() const { return device->driver().library(); }
    KernelSource kernels(bool contracted) const;
    /// The campaign's name of the library on this setup: "cuda/nofmad+nvrtc".
    std::string subject_name(bool contracted) const;
    static std::unique_ptr<harness::Subject> subject(std::string_view name);
    /// The test plants a fault in what a kernel is given.
    void expect_findings() { findings_expected_ = true; }

    AdamWEntry place(const reference::HostEntry& host) const { return place(host, queue); }
    static AdamWEntry place(const reference::HostEntry& host, const std::shared_ptr<Queue>& queue);
    /// Takes the guarded step on the device and in the oracle, and expects the same bits in every result.
    void expect_oracles_step(const std::vector<reference::HostEntry>& hosts, const AdamWOptions& options = {},
                             const StepControl& control = {}, const GradientGuardOptions& guard = {}) const;

    std::shared_ptr<cuda::CudaDevice> device;  ///< Kernels without contraction.
    std::shared_ptr<Queue> queue;

  private:
    std::size_t findings_before_ = 0;
    bool findings_expected_ = false;
};

/// Every test of the suite on every setup: ".../cuda_ptx".
#define GRADGUARD_ON_HARDWARE(suite)                                           \
    INSTANTIATE_TEST_SUITE_P(Everywhere, suite, ::testing::ValuesIn(setups()), \
                             [](const auto& setup) { return setup.param.name(); })

inline std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

Tensor upload(const std::shared_ptr<Queue>& queue, DType dtype, std::span<const std::byte> bytes);
Tensor upload(const std::shared_ptr<Queue>& queue, const std::vector<float>& values);
/// Waits.
std::vector<float> download(const Tensor& tensor);

/// The first place at which two arrays have other bits, in words; nothing when there is none. Any NaN equals any NaN.
std::string difference(const std::vector<float>& got, const std::vector<float>& want, const std::string& what);
/// The same of reports.
std::string difference(const GradientStatsReport& got, const GradientStatsReport& want);
/// The same of an entry after a step.
std::string difference(const reference::HostUpdate& got, const reference::HostUpdate& want);
reference::HostUpdate download(const AdamWUpdate& update);

/// Expects an error of this kind and operand whose message has these words.
template <class Action>
void expect_error(ErrorKind kind, const std::string& operand, const std::vector<std::string>& words, Action action) {
    try {
        action();
        ADD_FAILURE() << "no error was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
        EXPECT_EQ(error.site().operand, operand) << error.what();
        for (const std::string& word : words) {
            EXPECT_NE(error.message().find(word), std::string::npos) << word << " in: " << error.what();
        }
    }
}

}  // namespace gradguard::testing
