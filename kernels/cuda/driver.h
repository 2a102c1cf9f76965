// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/driver_abi.h"

namespace gradguard::cuda {

/// A function of the driver under the name that messages call it by.
template <typename Function>
struct DriverFunction {
    const char* name;
    Function* call = nullptr;
};

/// All that kernels/cuda calls.
struct DriverFunctions {
#define GRADGUARD_CUDA_MEMBER(name, parameters) DriverFunction<Fn_##name> name{#name};
    GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_CUDA_MEMBER)
#undef GRADGUARD_CUDA_MEMBER
};

/// A CUDA driver, loaded from a library at run time and initialised.
class Driver {
  public:
    /// The driver that drives hardware, as the loader finds it.
    static constexpr const char* kLibrary = "libcuda.so.1";

    /// Loads `library` (a file name or a path), resolves every function and calls cuInit. The same library is loaded
    /// once. Throws Error{DeviceFailure} that says what is missing: the library, symbols of it (the driver is older
    /// than CUDA 11.2), a device, ...
    static std::shared_ptr<const Driver> open(const std::string& library = kLibrary);
    /// A driver out of functions, for tests. `name` stands for the library in messages.
    static std::shared_ptr<const Driver> of(const DriverFunctions& functions, const std::string& name, bool hardware);

    const DriverFunctions& functions() const { return functions_; }
    const std::string& library() const { return library_; }
    /// CUDA version that the driver supports: 1000 * major + 10 * minor.
    int version() const { return version_; }
    /// False for a library that runs kernels on the virtual GPU under the driver's names, whatever its path.
    bool hardware() const { return hardware_; }

    /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)", or the number of a code that neither knows.
    std::string describe(CUresult result) const;

  private:
    Driver(const DriverFunctions& functions, std::string library, bool hardware);

    DriverFunctions functions_;
    std::string library_;
    int version_ = 0;
    bool hardware_;
};

/// "12.8" for 12080.
std::string cuda_version_text(int version);

/// Whether an error stays: the context, and with it everything on the device, is lost (cuda.h says of these codes that
/// any further CUDA work will return the same error).
bool stays(CUresult result);

}  // namespace gradguard::cuda
