// SPDX-License-Identifier: Apache-2.0
// What is said of drivers that are not there, too old, or without a device.
#include "kernels/cuda/driver.h"

#include <gtest/gtest.h>

#include "tests/cuda/cuda_test.h"

namespace gradguard::cuda {
namespace {

using testing::expect_failure;

/// A driver without any device, and one that fails to say what its errors are.
DriverFunctions no_device() {
    DriverFunctions functions;
    functions.cuInit.call = [](unsigned int) { return CUDA_ERROR_NO_DEVICE; };
    functions.cuGetErrorName.call = [](CUresult, const char**) { return CUDA_ERROR_INVALID_VALUE; };
    functions.cuGetErrorString.call = [](CUresult, const char** text) {
        *text = "no CUDA-capable device is detected";
        return CUDA_SUCCESS;
    };
    return functions;
}

TEST(Driver, OneThatIsNotThereIsNamedWithWhatTheLoaderSaid) {
    expect_failure("open", {"no CUDA driver: cannot load libno_such_driver.so.1: ", "cannot open shared object file"},
                   [] { Driver::open("libno_such_driver.so.1"); });
}

TEST(Driver, ALibraryThatIsNoneIsRefusedWithWhatItLacks) {
    expect_failure("open", {"libm.so.6 is too old", "lacks cuInit, cuDriverGetVersion, "},
                   [] { Driver::open("libm.so.6"); });
}

TEST(Driver, OneThatIsTooOldIsNamedWithItsVersionAndWhatItLacks) {
    expect_failure("open", {"(CUDA 11.1) is too old, want CUDA 11.2 or later", "cuMemAllocFromPoolAsync"},
                   [] { Driver::open(GRADGUARD_OLD_DRIVER); });
}

TEST(Driver, ItsRefusalToStartIsSaidInItsWords) {
    expect_failure("open", {"the driver fake: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"},
                   [] { Driver::of(no_device(), "fake", true); });
}

TEST(Driver, AnErrorThatItDoesNotKnowIsToldByNumber) {
    DriverFunctions functions = no_device();
    functions.cuInit.call = [](unsigned int) { return static_cast<CUresult>(12345); };
    functions.cuGetErrorString.call = [](CUresult, const char**) { return CUDA_ERROR_INVALID_VALUE; };
    expect_failure("open", {"cuInit: error 12345"}, [&] { Driver::of(functions, "fake", true); });
}

TEST(Driver, TheVirtualOneIsNoHardwareWhateverItsPath) {
    EXPECT_FALSE(Driver::open(testing::VirtualDriver::instance().library())->hardware());
}

TEST(Driver, ErrorsOfTheContextStayAndErrorsOfACallDoNot) {
    for (const CUresult lost : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_TIMEOUT,
                                CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ASSERT}) {
        EXPECT_TRUE(stays(lost)) << lost;
    }
    for (const CUresult passing : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_READY,
                                   CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_INVALID_PTX}) {
        EXPECT_FALSE(stays(passing)) << passing;
    }
}

}  // namespace
}  // namespace gradguard::cuda
