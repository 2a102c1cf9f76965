// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/control.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "harness/vdriver/driver.h"

#define GRADGUARD_CONTROL extern "C" __attribute__((visibility("default")))

namespace gradguard::vdriver {
namespace {

/// When the process ends, after all that the program itself has to do then.
__attribute__((destructor)) void at_exit() {
    try {
        write_report();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gradguard virtual driver: no report: %s\n", error.what());
    }
}

}  // namespace
}  // namespace gradguard::vdriver

using gradguard::vdriver::Driver;

// What lives as long as the library is never destroyed: exit handlers and threads of the program may still call the
// driver, and the report is written after them. So this library's own objects do not register with the C library.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

GRADGUARD_CONTROL int gradguard_vdriver_configure(const char* json) {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    if (driver.contexts.size() > 0) return gradguard::cuda::CUDA_ERROR_NOT_PERMITTED;
    try {
        if (json == nullptr) throw std::invalid_argument("configuration: null");
        driver.configuration = gradguard::vdriver::parse_configuration(json);
        driver.configured = true;
        return gradguard::cuda::CUDA_SUCCESS;
    } catch (const std::exception& error) {
        driver.record.say(error.what());
        return gradguard::cuda::CUDA_ERROR_INVALID_VALUE;
    }
}

GRADGUARD_CONTROL size_t gradguard_vdriver_report(char* buffer, size_t size) {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    const std::string text =
        driver.record.to_json(driver).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (size > 0) {
        const size_t fits = std::min(size - 1, text.size());
        std::memcpy(buffer, text.data(), fits);
        buffer[fits] = 0;
    }
    return text.size();
}

GRADGUARD_CONTROL void gradguard_vdriver_fail_call(uint64_t nth, int result) {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    driver.fail_with = static_cast<gradguard::cuda::CUresult>(result);
    driver.fail_at = result == gradguard::cuda::CUDA_SUCCESS ? UINT64_MAX : driver.calls + nth;
}

GRADGUARD_CONTROL uint64_t gradguard_vdriver_calls() {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    return driver.calls;
}

GRADGUARD_CONTROL void gradguard_vdriver_reset() {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    driver.reset();
}
