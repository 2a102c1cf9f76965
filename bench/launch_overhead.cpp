// SPDX-License-Identifier: Apache-2.0
// What the virtual driver adds to a launch: an empty kernel of one block, launched and waited for through the driver
// API of libgradguard_vdriver.so, against the same launch on the machine itself, in one run and in turn.
//   gradguard_launch_overhead [samples]    prints one JSON object
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/vgpu/machine.h"
#include "kernels/cuda/driver_abi.h"

namespace {

namespace cuda = gradguard::cuda;
namespace vgpu = gradguard::vgpu;

constexpr char kEmpty[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";
constexpr int kLaunches = 200;  // of a sample

void check(cuda::CUresult result, const char* call) {
    if (result != cuda::CUDA_SUCCESS) throw std::runtime_error(std::string(call) + ": " + std::to_string(result));
}

/// The kernel, ready to be launched through the driver.
class Driver {
  public:
    Driver() : library_(dlopen(GRADGUARD_VDRIVER, RTLD_NOW | RTLD_LOCAL)) {
        if (library_ == nullptr) throw std::runtime_error(dlerror());
        look_up(launch_, "cuLaunchKernel");
        look_up(synchronize_, "cuStreamSynchronize");
        call<cuda::Fn_cuInit>("cuInit", 0U);
        cuda::CUcontext context = nullptr;
        call<cuda::Fn_cuDevicePrimaryCtxRetain>("cuDevicePrimaryCtxRetain", &context, 0);
        call<cuda::Fn_cuCtxPushCurrent_v2>("cuCtxPushCurrent_v2", context);
        call<cuda::Fn_cuStreamCreate>("cuStreamCreate", &stream_, 0U);
        cuda::CUmodule module = nullptr;
        call<cuda::Fn_cuModuleLoadDataEx>("cuModuleLoadDataEx", &module, kEmpty, 0U, nullptr, nullptr);
        call<cuda::Fn_cuModuleGetFunction>("cuModuleGetFunction", &function_, module, "empty");
    }
    void launch() const {
        check(launch_(function_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), "cuLaunchKernel");
        check(synchronize_(stream_), "cuStreamSynchronize");
    }

  private:
    template <class Function>
    void look_up(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(dlsym(library_, name));
        if (function == nullptr) throw std::runtime_error(std::string("the driver lacks ") + name);
    }
    template <class Function, class... Arguments>
    void call(const char* name, Arguments... arguments) {
        Function* function = nullptr;
        look_up(function, name);
        check(function(arguments...), name);
    }

    void* library_;
    cuda::Fn_cuLaunchKernel* launch_ = nullptr;
    cuda::Fn_cuStreamSynchronize* synchronize_ = nullptr;
    cuda::CUstream stream_ = nullptr;
    cuda::CUfunction function_ = nullptr;
};

template <class Launch>
double microseconds_per_launch(const Launch& launch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kLaunches;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

nlohmann::ordered_json measure(int samples) {
    vgpu::Machine machine;
    const auto module = vgpu::Module::load(kEmpty, "empty.ptx");
    const auto direct = [&] { machine.launch(*module, "empty", {}, {}); };
    const Driver driver;
    const auto through_driver = [&] { driver.launch(); };
    std::vector<double> alone, driven;
    microseconds_per_launch(direct);
    microseconds_per_launch(through_driver);
    for (int i = 0; i < samples; ++i) {
        if (i % 2 == 0) alone.push_back(microseconds_per_launch(direct));
        driven.push_back(microseconds_per_launch(through_driver));
        if (i % 2 != 0) alone.push_back(microseconds_per_launch(direct));
    }
    return {{"machine_microseconds", median(alone)},
            {"driver_microseconds", median(driven)},
            {"added_microseconds", median(driven) - median(alone)},
            {"launches_per_sample", kLaunches},
            {"samples", samples}};
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const int samples = count > 1 ? std::atoi(arguments[1]) : 31;
        if (samples <= 0)
            throw std::runtime_error("want a number of samples above 0, got " + std::string(arguments[1]));
        std::puts(measure(samples).dump().c_str());
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gradguard_launch_overhead: %s\n", error.what());
        return 1;
    }
}
