// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/devices/registry.h"

namespace gradguard::harness {

/// The virtual driver: libgradguard_vdriver.so, which runs kernels on the virtual GPU under the names of the CUDA
/// driver API, opened as a CUDA device. It is one for the whole process, and so are its observers.

/// Where the library is: the environment variable GRADGUARD_VDRIVER_LIBRARY; else beside the running program, in ../lib
/// of that, in the build folder, or where the loader finds it. Throws DeviceUnavailable.
std::string virtual_driver_library();

/// Throws DeviceUnavailable, also while a device with another seed or other observers is open; std::invalid_argument
/// for an unknown observer.
std::shared_ptr<Device> open_virtual_driver(const DeviceRequest& request);

/// What its observers have against the kernels that ran since it was configured, by whichever device; a line each.
std::vector<std::string> virtual_driver_findings();

}  // namespace gradguard::harness
