// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/cuda_test.h"

#include <stdexcept>

#include "harness/devices/virtual_driver.h"
#include "kernels/cuda/dynamic_library.h"

namespace gradguard::testing {

VirtualDriver::VirtualDriver() {
    const cuda::DynamicLibrary library = cuda::DynamicLibrary::open(harness::virtual_driver_library());
    library_ = library.name();
    configure_ = library.function<int(const char*)>("gradguard_vdriver_configure");
    report_ = library.function<std::size_t(char*, std::size_t)>("gradguard_vdriver_report");
    reset_ = library.function<void()>("gradguard_vdriver_reset");
}

VirtualDriver& VirtualDriver::instance() {
    static VirtualDriver driver;
    return driver;
}

void VirtualDriver::restart(const std::string& configuration) const {
    reset_();
    if (configure_(configuration.c_str()) != 0) throw std::invalid_argument("configuration " + configuration);
}

nlohmann::json VirtualDriver::report() const {
    std::string text(report_(nullptr, 0) + 1, '\0');
    text.resize(report_(text.data(), text.size()));
    return nlohmann::json::parse(text);
}

void CudaTest::restart(std::uint64_t seed, const nlohmann::json& more) {
    watched_.reset();
    nlohmann::json configuration = {{"observers", "all"}, {"seed", seed}};
    configuration.update(more);
    VirtualDriver::instance().restart(configuration.dump());
    watched_ = std::make_unique<WatchedDriver>(cuda::Driver::open(VirtualDriver::instance().library()));
}

std::shared_ptr<cuda::CudaDevice> CudaTest::open(cuda::CudaDeviceOptions options) const {
    options.driver = watched_->driver();
    return cuda::CudaDevice::open(options);
}

void CudaTest::expect_nothing_left() const {
    const nlohmann::json report = VirtualDriver::instance().report();
    const nlohmann::json& live = report.at("live");
    EXPECT_EQ(live.at("allocations").size(), 0U) << live.dump(1);
    for (const char* kind : {"contexts", "modules", "streams", "events", "memory_pools"}) {
        EXPECT_EQ(live.at(kind), 0) << kind << " in " << live.dump(1);
    }
    if (findings_expected_) return;
    EXPECT_EQ(report.at("findings").size(), 0U) << report.at("findings").dump(1);
}

void CudaTest::TearDown() { expect_nothing_left(); }

}  // namespace gradguard::testing
