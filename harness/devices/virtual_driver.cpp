// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/virtual_driver.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/dynamic_library.h"
#include "reference/contract/error.h"

#ifndef GRADGUARD_VDRIVER_BUILT
#define GRADGUARD_VDRIVER_BUILT ""
#endif

namespace gradguard::harness {
namespace {

constexpr char kFile[] = "libgradguard_vdriver.so";

// The functions of harness/vdriver/control.h, by their names in the library.
using Configure = int(const char*);
using Report = std::size_t(char*, std::size_t);
constexpr int kInvalidConfiguration = 1;  // CUDA_ERROR_INVALID_VALUE

cuda::DynamicLibrary load() {
    try {
        return cuda::DynamicLibrary::open(virtual_driver_library());
    } catch (const cuda::LibraryError& error) {
        throw DeviceUnavailable(error.what());
    }
}

std::string configuration(const DeviceRequest& request) {
    return nlohmann::ordered_json(
               {{"observers", request.observers}, {"seed", request.schedule_seed}, {"count", request.count}})
        .dump();
}

/// Configures the library, which knows one configuration at a time. A request for nothing in particular leaves it to
/// the library, and so to the environment variable that it reads.
void configure(const cuda::DynamicLibrary& library, const DeviceRequest& request) {
    static std::mutex mutex;
    static std::string in_effect = configuration({});
    const std::lock_guard lock(mutex);
    const std::string wanted = configuration(request);
    if (wanted == in_effect) return;
    const int result = library.function<Configure>("gradguard_vdriver_configure")(wanted.c_str());
    if (result == kInvalidConfiguration)
        throw std::invalid_argument("want names of observers, got " + request.observers);
    if (result != 0) {
        throw DeviceUnavailable("a device with the configuration " + in_effect + " is open; another with " + wanted +
                                " has to wait until it is closed");
    }
    in_effect = wanted;
}

}  // namespace

std::string virtual_driver_library() {
    if (const char* chosen = std::getenv("GRADGUARD_VDRIVER_LIBRARY"); chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    std::error_code ignored;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const std::filesystem::path& path :
         {program / kFile, program / ".." / "lib" / kFile, std::filesystem::path(GRADGUARD_VDRIVER_BUILT)}) {
        if (std::filesystem::is_regular_file(path, ignored)) return path.string();
    }
    return kFile;
}

std::shared_ptr<Device> open_virtual_driver(const DeviceRequest& request) {
    const cuda::DynamicLibrary library = load();
    configure(library, request);
    cuda::CudaDeviceOptions options;
    options.driver_library = library.name();
    try {
        return cuda::CudaDevice::open(options);
    } catch (const Error& error) {
        throw DeviceUnavailable(error.message());
    }
}

std::vector<std::string> virtual_driver_findings() {
    const cuda::DynamicLibrary library = load();
    auto* report = library.function<Report>("gradguard_vdriver_report");
    std::string text;
    std::size_t length = report(nullptr, 0);
    while (length >= text.size()) {  // it may grow meanwhile, by what other threads do
        text.resize(length + 4096);
        length = report(text.data(), text.size());
    }
    text.resize(length);
    std::vector<std::string> lines;
    const nlohmann::json parsed = nlohmann::json::parse(text);
    for (const auto& finding : parsed.at("findings")) {
        lines.push_back(finding.at("message"));
    }
    return lines;
}

}  // namespace gradguard::harness
