// SPDX-License-Identifier: Apache-2.0
// What the kernels take on the device, as its own compiler made them.
#include "kernels/device/params.h"
#include "property_tests/hardware/hardware_test.h"

namespace gradguard::testing {
namespace {

class HardwareKernel : public Hardware {
  protected:
    /// Module and name of every entry.
    static std::vector<std::pair<std::string, std::string>> entries() {
        std::vector<std::pair<std::string, std::string>> all = {{"statistics", kernels::kMergeEntry}};
        for (const std::string dtype : {"f32", "f16", "bf16"}) {
            all.emplace_back("statistics", "gradient_statistics_" + dtype);
            for (const std::string first : {"", "_first"}) {
                for (const std::string amsgrad : {"", "_amsgrad"}) {
                    for (const std::string clipped : {"", "_clipped"}) {
                        all.emplace_back("update", "adamw_" + dtype + first + amsgrad + clipped);
                    }
                }
            }
        }
        return all;
    }
    /// Calls check(name, module, resources) for each kernel of both builds.
    template <class Check>
    void for_each_kernel(Check check) const {
        for (const bool contracted : {false, true}) {
            device->set_kernel_source(kernels(contracted));
            for (const auto& [module, name] : entries()) {
                const auto kernel = std::dynamic_pointer_cast<const cuda::CudaKernel>(device->kernel(module, name));
                ASSERT_NE(kernel, nullptr) << name;
                check(name + (contracted ? " (fmad)" : " (nofmad)"), module, kernel->resources());
            }
        }
    }
};
GRADGUARD_ON_HARDWARE(HardwareKernel);

TEST_P(HardwareKernel, UsesNoLocalMemory) {
    for_each_kernel([](const std::string& name, const std::string&, const cuda::KernelResources& resources) {
        EXPECT_EQ(resources.local_bytes, 0) << name;
    });
}

TEST_P(HardwareKernel, TakesAtMost64Registers) {
    for_each_kernel([](const std::string& name, const std::string&, const cuda::KernelResources& resources) {
        EXPECT_GT(resources.registers, 0) << name;
        EXPECT_LE(resources.registers, 64) << name;
    });
}

TEST_P(HardwareKernel, TakesTheContractsSharedMemory) {
    for_each_kernel([](const std::string& name, const std::string& module, const cuda::KernelResources& resources) {
        EXPECT_EQ(resources.shared_bytes, module == "statistics" ? 3072 : 0) << name;
    });
}

TEST_P(HardwareKernel, RunsWith256ThreadsInABlock) {
    for_each_kernel([](const std::string& name, const std::string&, const cuda::KernelResources& resources) {
        EXPECT_GE(resources.max_threads_per_block, 256) << name;
    });
}

}  // namespace
}  // namespace gradguard::testing
