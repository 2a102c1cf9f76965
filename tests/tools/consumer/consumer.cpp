// SPDX-License-Identifier: Apache-2.0
// Uses what each build option contains (contract section 7), and shows that the smaller ones lack what they should.
#include <cstdio>
#include <stdexcept>

#include "reference/contract/options.h"
#if EXPECT_FUSED_ADAMW
#include "kernels/host/option_rules.h"
#endif
#if EXPECT_GRADIENT_GUARD
#include "kernels/host/decision.h"
#include "reference/fp64/fp64_norm.h"
#endif
#if EXPECT_FUSED_ADAMW_DEVICE
#include "kernels/host/adamw.h"
#include "kernels/ptx/embedded.h"
#endif
#if EXPECT_GRADIENT_GUARD_DEVICE
#include "kernels/host/guarded_adamw.h"
#endif
#if EXPECT_FUSED_ADAMW_CUDA
#include "kernels/cuda/cuda_device.h"
#include "reference/contract/error.h"
#endif

using namespace gradguard;

namespace {

bool good = true;
void expect(bool fact, const char* what) {
    if (!fact) std::printf("not so: %s\n", what);
    good = good && fact;
}

#if EXPECT_FUSED_ADAMW_DEVICE
bool embeds(const char* module) {
    try {
        return !kernels::embedded_ptx(module, "fmad").empty();
    } catch (const std::out_of_range&) {
        return false;
    }
}
#endif

#if EXPECT_FUSED_ADAMW_CUDA
/// The CUDA device looks for its driver when it is opened, and says what it missed.
bool misses_its_driver() {
    try {
        cuda::CudaDevice::open({.driver_library = "libno_such_driver.so"});
        return false;
    } catch (const Error& error) {
        return error.kind() == ErrorKind::kDeviceFailure &&
               error.message().find("cannot load libno_such_driver.so") != std::string::npos;
    }
}
#endif

}  // namespace

int main() {
    expect(AdamWOptions{}.beta1 == 0.9F, "the vocabulary is there");
#if EXPECT_FUSED_ADAMW
    kernels::validate(AdamWOptions{});
#endif
#if EXPECT_GRADIENT_GUARD
    const GradientStats stats{.total_norm = 5.0, .max_finite_abs = 4.0F, .elements = 2, .tensors = 1};
    expect(decide(stats).clip_multiplier == 0x1.999994p-3F, "groups [3] and [4] are clipped by 0x3E4CCCCA");
#endif
#if EXPECT_FUSED_ADAMW_DEVICE
    expect(embeds("update"), "the update kernel is embedded");
    expect(embeds("statistics") == bool{EXPECT_GRADIENT_GUARD_DEVICE}, "the scan is embedded with the guard only");
    const Tensor empty = Tensor::over(nullptr, DType::kF32, {0}, Buffer{});
    expect(empty.elements() == 0, "a tensor needs no device");
    // Linked, not run: there is no device in this build. Volatile, or the compiler folds the comparison away.
    auto* volatile unguarded = &adamw_step;
    expect(unguarded != nullptr, "the unguarded operator links");
#endif
#if EXPECT_GRADIENT_GUARD_DEVICE
    auto* volatile guarded = &guarded_adamw_step;
    expect(guarded != nullptr, "the guarded operator links");
#endif
#if EXPECT_FUSED_ADAMW_CUDA
    expect(misses_its_driver(), "the CUDA device is there, without a driver");
#endif
    return good ? 0 : 1;
}
