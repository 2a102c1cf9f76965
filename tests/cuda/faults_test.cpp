// SPDX-License-Identifier: Apache-2.0
// Every call of the driver fails once: while a device is opened, in a step, and while everything is torn down.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/device/params.h"
#include "kernels/host/guarded_adamw.h"
#include "tests/cuda/cuda_test.h"
#include "tests/support/group_values.h"

namespace gradguard {
namespace {

using namespace cuda;

/// The uncontracted kernels without the entries that the tests' groups do not use: a module is loaded in each life.
std::string needed_ptx(std::string_view module) {
    static const std::vector<std::string> needed = {"gradient_statistics_f32", "gradient_statistics_f16",
                                                    kernels::kMergeEntry, "adamw_f32_clipped",
                                                    "adamw_f16_first_clipped"};
    std::string text = KernelSource::embedded(false).ptx(module);
    constexpr std::string_view kEntry = ".visible .entry ";
    for (std::size_t at = text.find(kEntry); at != std::string::npos; at = text.find(kEntry, at)) {
        const std::size_t name = at + kEntry.size();
        if (std::ranges::count(needed, text.substr(name, text.find('(', name) - name)) != 0) {
            at = name;
        } else {
            text.erase(at, text.find("\n}\n", at) + 3 - at);
        }
    }
    return text;
}

/// What a whole life with one step came to.
struct Life {
    std::optional<Error> error;
    std::vector<std::vector<float>> parameters;  ///< After the step; empty when it failed.
    bool inputs_as_they_were = false;            ///< False also when they could not be read.
    bool next_step_works = false;
    std::optional<Error> next_error;
};

class CudaFaults : public testing::CudaTest {
  protected:
    void SetUp() override {
        CudaTest::SetUp();
        hosts_ = {testing::host_entry(1500, DType::kF32, 1, 2, false),
                  testing::host_entry(40, DType::kF16, 2, 0, false)};
        for (const auto& update : reference::guarded_step(hosts_, {}, {}, {}).entries)
            want_.push_back(update.parameters);
    }

    std::vector<AdamWEntry> place(const std::shared_ptr<Queue>& queue) const {
        std::vector<AdamWEntry> entries;
        for (const auto& host : hosts_) {
            Tensor gradients = Tensor::allocate(queue, host.gradient_dtype, {host.parameters.size()});
            gradients.upload(host.gradients);
            AdamWEntry entry = {testing::upload(queue, host.parameters), gradients, std::nullopt};
            if (host.state) {
                entry.state = {host.state->step, testing::upload(queue, host.state->first_moment),
                               testing::upload(queue, host.state->second_moment), std::nullopt};
            }
            entries.push_back(std::move(entry));
        }
        return entries;
    }

    /// Opens a device, places a group, takes a step, reads it, and tears everything down. Whatever fails, the same step
    /// is tried again on the same device, and the inputs are read.
    Life live(const CudaDeviceOptions& options = {}) const {
        Life life;
        std::shared_ptr<CudaDevice> device;
        std::shared_ptr<Queue> queue;
        std::vector<AdamWEntry> entries;
        try {
            device = open(options);
            device->set_kernel_source({"needed", needed_ptx});
            queue = device->create_queue();
            entries = place(queue);
            const auto got = guarded_adamw_step(entries);
            queue->synchronize();
            for (const auto& update : got.entries) life.parameters.push_back(testing::download(update.parameters));
        } catch (const Error& error) {
            life.error = error;
            life.parameters.clear();
        }
        try {
            if (device == nullptr) device = open(options);
            device->set_kernel_source({"needed", needed_ptx});
            if (queue == nullptr) queue = device->create_queue();
            if (entries.size() != hosts_.size()) entries = place(queue);
            const auto got = guarded_adamw_step(entries);
            queue->synchronize();
            life.next_step_works = true;
            life.inputs_as_they_were = true;
            for (std::size_t i = 0; i < hosts_.size(); ++i) {
                life.next_step_works &= testing::download(got.entries[i].parameters) == want_[i];
                life.inputs_as_they_were &= testing::download(entries[i].parameters) == hosts_[i].parameters;
            }
        } catch (const Error& error) {
            life.next_error = error;
        }
        return life;
    }

    std::vector<reference::HostEntry> hosts_;
    std::vector<std::vector<float>> want_;
};

/// Calls that nothing of the result depends on, or that are made once more when they fail: nobody is told.
bool may_pass_unnoticed(const std::string& call) {
    static const char* const kAlways[] = {"cuCtxPopCurrent_v2", "cuEventQuery", "cuMemFreeAsync", "cuMemFree_v2",
                                          "cuMemFreeHost", "cuStreamDestroy_v2", "cuEventDestroy_v2",
                                          "cuMemPoolDestroy", "cuModuleUnload", "cuGetErrorName", "cuGetErrorString",
                                          "cuDevicePrimaryCtxRelease_v2",
                                          // In a destructor; elsewhere their failure is told.
                                          "cuCtxPushCurrent_v2", "cuStreamSynchronize"};
    return std::find(std::begin(kAlways), std::end(kAlways), call) != std::end(kAlways);
}

TEST_F(CudaFaults, ALifeWithoutAnyFailureGivesTheOraclesBits) {
    const Life life = live();
    EXPECT_FALSE(life.error) << life.error->what();
    EXPECT_EQ(life.parameters, want_);
    EXPECT_TRUE(life.inputs_as_they_were);
    EXPECT_TRUE(life.next_step_works);
}

TEST_F(CudaFaults, EachCallThatFailsOnceIsToldByNameLeaksNothingAndTheNextStepWorks) {
    for (const bool pool : {true, false}) {
        watched_->forget();
        live({.pool = pool});
        const std::size_t calls = watched_->calls().size();
        std::map<std::string, std::size_t> told;
        for (std::size_t n = 0; n < calls; ++n) {
            restart(1);
            watched_->fail(n, CUDA_ERROR_INVALID_VALUE);
            const Life life = live({.pool = pool});
            const std::string failed = watched_->failed();
            SCOPED_TRACE("call " + std::to_string(n) + ", " + failed);
            if (life.error) {
                const std::string text = life.error->what();
                EXPECT_TRUE(life.error->kind() == ErrorKind::kDeviceFailure ||
                            life.error->kind() == ErrorKind::kReadback)
                    << text;
                EXPECT_NE(text.find(failed), std::string::npos) << text;
                EXPECT_NE(text.find("CUDA_ERROR_INVALID_VALUE"), std::string::npos) << text;
                EXPECT_FALSE(life.error->site().operand.empty()) << text;
                ++told[failed];
            } else {
                EXPECT_EQ(life.parameters, want_);
                EXPECT_TRUE(may_pass_unnoticed(failed) || life.next_error) << "nobody was told";
            }
            // A call of the second step failed, where the first needed fewer.
            const std::string later = life.next_error ? life.next_error->what() : failed;
            EXPECT_NE(later.find(failed), std::string::npos) << later;
            EXPECT_TRUE(life.next_step_works || life.next_error);
            EXPECT_TRUE(life.inputs_as_they_were || life.next_error);
            expect_nothing_left();
            if (HasFailure()) return;
        }
        for (const char* call : {"cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute", "cuStreamCreate", "cuMemHostAlloc",
                                 "cuEventCreate", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord",
                                 "cuEventSynchronize", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel",
                                 "cuCtxPushCurrent_v2", "cuStreamSynchronize"}) {
            EXPECT_GT(told[call], 0U) << call;
        }
        EXPECT_GT(told[pool ? "cuMemAllocFromPoolAsync" : "cuMemAlloc_v2"], 0U);
    }
}

TEST_F(CudaFaults, AnErrorThatStaysIsTheErrorOfEverythingAfterItAndNothingThrowsOnTheWayOut) {
    watched_->forget();
    live();
    const std::size_t calls = watched_->calls().size();
    std::size_t lost = 0;
    for (std::size_t n = 0; n < calls; n += 3) {
        restart(1);
        watched_->fail(n, CUDA_ERROR_LAUNCH_FAILED);
        const Life life = live();
        const std::string failed = watched_->failed();
        SCOPED_TRACE("call " + std::to_string(n) + ", " + failed);
        if (life.error && life.error->site().operand != "open") {  // what could not be opened is opened anew
            ++lost;
            ASSERT_TRUE(life.next_error) << life.error->what();
            EXPECT_NE(life.next_error->message().find(failed), std::string::npos) << life.error->what() << "\n"
                                                                                  << life.next_error->what();
        }
        expect_nothing_left();  // this driver goes on, so everything could be given back
        if (HasFailure()) return;
    }
    EXPECT_GT(lost, 0U);
}

TEST_F(CudaFaults, MemoryThatCannotBeFreedIsToldAtTheNextWait) {
    const auto device = open();
    const auto queue = device->create_queue();
    Buffer buffer = device->allocate(64, *queue);
    queue->synchronize();
    // The second try fails too.
    const DeviceAddress address = buffer.address;
    watched_->fail("cuMemFreeAsync", 0, CUDA_ERROR_INVALID_VALUE, 2);
    buffer = {};
    testing::expect_failure("synchronize", {"cuMemFreeAsync: CUDA_ERROR_INVALID_VALUE"}, [&] { queue->synchronize(); });
    queue->synchronize();
    EXPECT_EQ(watched_->inner().cuMemFree_v2.call(address), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gradguard
