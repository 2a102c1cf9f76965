// SPDX-License-Identifier: Apache-2.0
// The device layer: properties, contexts, streams, memory, readback, and errors.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <thread>

#include "harness/devices/hooked_device.h"
#include "kernels/cuda/dynamic_library.h"
#include "kernels/device/params.h"
#include "property_tests/hardware/hardware_test.h"
#include "reference/contract/constants.h"
#include "tests/support/group_values.h"

namespace gradguard::testing {
namespace {

using namespace cuda;

class HardwareDevice : public Hardware {
  protected:
    int attribute(CUdevice_attribute which) const {
        int value = -1;
        EXPECT_EQ(driver().cuDeviceGetAttribute.call(&value, which, 0), CUDA_SUCCESS);
        return value;
    }
    template <typename Function>
    auto* function(const char* name) const {
        return DynamicLibrary::open(driver_library()).function<Function>(name);
    }
};
GRADGUARD_ON_HARDWARE(HardwareDevice);

const std::vector<reference::HostEntry> kOne = {host_entry(3000, DType::kF32, 5, 3, true)};

/// Takes the step of kOne and tells what is not the oracle's.
std::string step_in(const std::shared_ptr<Queue>& queue, const std::vector<AdamWEntry>& entries) {
    const auto want = reference::guarded_step(kOne, {.amsgrad = true}, {}, {});
    const auto got = guarded_adamw_step(entries, {.amsgrad = true});
    std::string wrong = difference(download(got.entries.at(0)), want.entries.at(0));
    queue->synchronize();
    return wrong;
}

TEST_P(HardwareDevice, ItsPropertiesAreTheDriversAttributes) {
    const DeviceProperties& properties = device->properties();
    const auto is = [&](std::uint64_t value, CUdevice_attribute which) {
        EXPECT_EQ(static_cast<std::int64_t>(value), attribute(which));
    };
    is(properties.max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    is(properties.max_threads_in_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    is(properties.max_blocks_in_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    is(properties.max_shared_bytes_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
}

TEST_P(HardwareDevice, ItGrantsWhatTheKernelsNeed) {
    const DeviceProperties& properties = device->properties();
    EXPECT_GE(properties.max_threads_per_block, 256U);
    EXPECT_GE(properties.max_threads_in_x, 256U);
    EXPECT_GE(properties.max_blocks_in_x, 1024U);
    EXPECT_GE(properties.max_shared_bytes_per_block, 3072U);
    EXPECT_GE(device->compute_capability().major, 8);
}

TEST_P(HardwareDevice, OnlyHardwareIsCalledSo) {
    const bool named_virtual = device->properties().name.find("virtual driver") == 0;
    EXPECT_EQ(named_virtual, GetParam().device == "vdriver") << device->properties().name;
    EXPECT_EQ(device->driver().hardware(), GetParam().device == "cuda");
}

TEST_P(HardwareDevice, OneThatIsTooSmallForTheKernelsIsRefusedBeforeAnyCall) {
    DeviceProperties small = device->properties();
    small.max_shared_bytes_per_block = 3071;
    const auto log = std::make_shared<harness::CallLog>();
    const auto limited = harness::hook_device(device, {log}, small);
    const auto limited_queue = limited->create_queue();
    const std::vector<AdamWEntry> entries = {place(kOne[0], limited_queue)};
    limited_queue->synchronize();
    log->calls.clear();
    try {
        guarded_adamw_step(entries, {.amsgrad = true});
        ADD_FAILURE() << "no error was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUnsupportedDevice) << error.what();
    }
    EXPECT_TRUE(log->calls.empty());
}

TEST_P(HardwareDevice, AStepRunsInTheCallersContext) {
    using Create = CUresult(CUcontext*, unsigned, CUdevice);
    CUcontext own = nullptr;
    ASSERT_EQ(function<Create>("cuCtxCreate_v2")(&own, 0, 0), CUDA_SUCCESS);  // and current
    {
        const auto in_own = open({.context = own});
        EXPECT_EQ(in_own->context(), own);
        EXPECT_NE(in_own->context(), device->context());
        const auto own_queue = in_own->create_queue();
        EXPECT_EQ(step_in(own_queue, {place(kOne[0], own_queue)}), "");
        CUcontext now = nullptr;
        EXPECT_EQ(function<CUresult(CUcontext*)>("cuCtxGetCurrent")(&now), CUDA_SUCCESS);
        EXPECT_EQ(now, own) << "the caller's context is no longer current";
    }
    EXPECT_EQ(function<CUresult(CUcontext)>("cuCtxDestroy_v2")(own), CUDA_SUCCESS) << "the caller's context is gone";
    EXPECT_EQ(step_in(queue, {place(kOne[0])}), "") << "in the device's own context";
}

/// The caller's program: the primary context current, a stream, memory.
class CallersProgram {
  public:
    explicit CallersProgram(const DriverFunctions& driver) : driver_(driver) {
        EXPECT_EQ(driver_.cuDevicePrimaryCtxRetain.call(&context, 0), CUDA_SUCCESS);
        EXPECT_EQ(driver_.cuCtxPushCurrent_v2.call(context), CUDA_SUCCESS);
        EXPECT_EQ(driver_.cuStreamCreate.call(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    ~CallersProgram() {
        for (const CUdeviceptr address : memory_) EXPECT_EQ(driver_.cuMemFree_v2.call(address), CUDA_SUCCESS);
        EXPECT_EQ(driver_.cuStreamDestroy_v2.call(stream), CUDA_SUCCESS) << "the caller's stream is gone";
        CUcontext popped = nullptr;
        EXPECT_EQ(driver_.cuCtxPopCurrent_v2.call(&popped), CUDA_SUCCESS);
        EXPECT_EQ(driver_.cuDevicePrimaryCtxRelease_v2.call(0), CUDA_SUCCESS);
    }
    CallersProgram(const CallersProgram&) = delete;
    CallersProgram& operator=(const CallersProgram&) = delete;

    CUdeviceptr allocate(std::size_t bytes) {
        CUdeviceptr address = 0;
        EXPECT_EQ(driver_.cuMemAlloc_v2.call(&address, bytes), CUDA_SUCCESS);
        memory_.push_back(address);
        return address;
    }
    /// Queued in the caller's stream.
    void copy(CUdeviceptr to, const void* from, std::size_t bytes) const {
        EXPECT_EQ(driver_.cuMemcpyHtoDAsync_v2.call(to, from, bytes, stream), CUDA_SUCCESS);
    }

    CUcontext context = nullptr;
    CUstream stream = nullptr;

  private:
    const DriverFunctions& driver_;
    std::vector<CUdeviceptr> memory_;
};

TEST_P(HardwareDevice, AStepRunsOnTheCallersMemoryBehindTheCallersWorkInItsStream) {
    const reference::HostEntry host = host_entry(3000, DType::kF32, 5, 0, false);
    const std::size_t bytes = 4 * host.parameters.size();
    CallersProgram program(driver());
    const CUdeviceptr parameters = program.allocate(bytes);
    const CUdeviceptr gradients = program.allocate(bytes);
    const auto want = reference::guarded_step(std::vector{host}, {}, {}, {});
    const auto shared = device->queue_over(program.stream);
    program.copy(parameters, host.parameters.data(), bytes);
    program.copy(gradients, host.gradients.data(), bytes);
    const std::vector<AdamWEntry> entries = {
        {Tensor::over(shared, DType::kF32, {3000}, device->borrow(parameters, bytes)),
         Tensor::over(shared, DType::kF32, {3000}, device->borrow(gradients, bytes)), std::nullopt}};
    const auto got = guarded_adamw_step(entries);
    EXPECT_EQ(difference(download(got.entries[0]), want.entries[0]), "");
    EXPECT_EQ(difference(download(entries[0].parameters), host.parameters, "the caller's parameters"), "");
}

TEST_P(HardwareDevice, MemoryThatTheDriverDoesNotKnowOrThatEndsTooSoonIsRefused) {
    CallersProgram program(driver());
    const CUdeviceptr address = program.allocate(64);
    EXPECT_EQ(device->borrow(address + 16, 48).address, address + 16);
    expect_error(ErrorKind::kInvalidTensor, "storage", {"which the driver does not know"},
                 [&] { device->borrow(DeviceAddress{1} << 46U, 4); });
    EXPECT_THROW(device->borrow(address + 16, std::uint64_t{1} << 40U), Error);
}

TEST_P(HardwareDevice, AStreamOfAnotherContextIsRefused) {
    using Create = CUresult(CUcontext*, unsigned, CUdevice);
    CallersProgram program(driver());
    CUcontext own = nullptr;
    ASSERT_EQ(function<Create>("cuCtxCreate_v2")(&own, 0, 0), CUDA_SUCCESS);
    {
        const auto in_own = open({.context = own});
        expect_error(ErrorKind::kDeviceFailure, "create_queue", {"the stream belongs to another context"},
                     [&] { in_own->queue_over(program.stream); });
    }
    EXPECT_EQ(function<CUresult(CUcontext)>("cuCtxDestroy_v2")(own), CUDA_SUCCESS);
}

TEST_P(HardwareDevice, TwoStreamsAtATimeGiveTheBitsOfOne) {
    const auto other = device->create_queue();
    const auto want = reference::guarded_step(kOne, {.amsgrad = true}, {}, {});
    const std::vector<AdamWEntry> here = {place(kOne[0])};
    const std::vector<AdamWEntry> there = {place(kOne[0], other)};
    for (int again = 0; again < 5; ++again) {
        const auto one = guarded_adamw_step(here, {.amsgrad = true});
        const auto two = guarded_adamw_step(there, {.amsgrad = true});
        EXPECT_EQ(difference(download(two.entries[0]), want.entries[0]), "");
        EXPECT_EQ(difference(download(one.entries[0]), want.entries[0]), "");
    }
}

TEST_P(HardwareDevice, ThreadsWithQueuesOfTheirOwnDoNotDisturbEachOther) {
    device->kernel("statistics", kernels::kMergeEntry);
    std::vector<std::string> wrong(4);
    std::vector<std::thread> threads;
    for (std::string& problem : wrong) {
        threads.emplace_back([&] {
            try {
                const auto own = device->create_queue();
                for (int again = 0; again < 3 && problem.empty(); ++again) {
                    problem = step_in(own, {place(kOne[0], own)});
                }
            } catch (const std::exception& error) {
                problem = error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<std::string>(4));
}

TEST_P(HardwareDevice, AReadbackBringsAllRangesInTheirOrder) {
    const Tensor one = upload(queue, std::vector<float>{1, 2, 3});
    const Tensor two = upload(queue, std::vector<float>{4, 5});
    for (int again = 0; again < 3; ++again) {
        const auto data = queue->readback({{two.storage, 4, 4}, {one.storage, 0, 12}, {one.storage, 0, 0}})->wait();
        ASSERT_EQ(data.size(), 3U);
        ASSERT_EQ(data[0].size(), 4U);
        ASSERT_EQ(data[1].size(), 12U);
        float five = 0;
        std::vector<float> three(3);
        std::memcpy(&five, data[0].data(), 4);
        std::memcpy(three.data(), data[1].data(), 12);
        EXPECT_EQ(five, 5.0F);
        EXPECT_EQ(three, (std::vector<float>{1, 2, 3}));
        EXPECT_TRUE(data[2].empty());
    }
}

TEST_P(HardwareDevice, TwoReadbacksAtATimeEachBringWhatWasThereThen) {
    const Tensor tensor = upload(queue, std::vector<float>{1});
    const auto first = queue->readback({{tensor.storage, 0, 4}});
    const float two = 2;
    tensor.upload(std::as_bytes(std::span(&two, 1)));
    const auto second = queue->readback({{tensor.storage, 0, 4}});
    queue->readback({{tensor.storage, 0, 4}}).reset();  // nobody waits for this one
    float values[2];
    std::memcpy(values, second->wait().at(0).data(), 4);
    std::memcpy(values + 1, first->wait().at(0).data(), 4);
    EXPECT_EQ(values[0], 2.0F);
    EXPECT_EQ(values[1], 1.0F);
}

TEST_P(HardwareDevice, AnUploadOfAnySizeArrivesWholeAndItsSourceMayChangeAtOnce) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, 3 * Staging::kHalfBytes / 4 + 123}) {
        std::vector<float> source(count);
        for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<float>(i % 1000003);
        const std::vector<float> kept = source;
        const Tensor tensor = upload(queue, source);
        std::fill(source.begin(), source.end(), -9.0F);
        EXPECT_EQ(difference(download(tensor), kept, "uploaded"), "") << count;
    }
}

TEST_P(HardwareDevice, MemoryWithoutAPoolGivesTheSameBits) {
    const auto without = open({.pool = false});
    const auto own_queue = without->create_queue();
    EXPECT_EQ(step_in(own_queue, {place(kOne[0], own_queue)}), "");
}

TEST_P(HardwareDevice, MoreMemoryThanThereIsFailsTheAllocationAndNothingElse) {
    EXPECT_EQ(step_in(queue, {place(kOne[0])}), "");
    expect_error(ErrorKind::kDeviceFailure, "allocate", {"CUDA_ERROR_OUT_OF_MEMORY"},
                 [&] { device->allocate(std::uint64_t{1} << 44U, *queue); });
    EXPECT_EQ(step_in(queue, {place(kOne[0])}), "");
}

TEST_P(HardwareDevice, MemoryIsFreedInStreamOrder) {
    const auto want = reference::guarded_step(kOne, {.amsgrad = true}, {}, {});
    for (int again = 0; again < 20; ++again) {
        // Inputs go while the kernel may not have run, and the next step's take their place.
        std::optional<GuardedAdamWUpdate> got;
        {
            const std::vector<AdamWEntry> entries = {place(kOne[0])};
            got = guarded_adamw_step(entries, {.amsgrad = true});
        }
        const std::vector<float> overwriting(3000, 9.0F);
        std::vector<Tensor> others;
        for (int i = 0; i < 5; ++i) others.push_back(upload(queue, overwriting));
        ASSERT_EQ(difference(download(got->entries[0]), want.entries[0]), "");
    }
}

TEST_P(HardwareDevice, PtxThatDoesNotCompileIsRefusedWithTheCompilersWordsAndTheDeviceGoesOn) {
    expect_error(ErrorKind::kDeviceFailure, "load_module", {"module 'broken'", "CUDA_ERROR_INVALID_PTX"}, [&] {
        device->load_module("broken",
                            ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { no.such.instruction %r1; }\n");
    });
    const auto module = device->load_module("update", kernels(false).ptx("update"));
    expect_error(ErrorKind::kDeviceFailure, "load_module", {"entry 'adamw_f64'", "CUDA_ERROR_NOT_FOUND"},
                 [&] { module->kernel("adamw_f64"); });
    EXPECT_EQ(step_in(queue, {place(kOne[0])}), "");
}

TEST_P(HardwareDevice, ATimerTellsTheTimeBetweenTwoPoints) {
    const CudaTimer timer(std::dynamic_pointer_cast<CudaQueue>(queue));
    timer.start();
    const auto update = guarded_adamw_step(std::vector<AdamWEntry>{place(kOne[0])}, {.amsgrad = true});
    timer.stop();
    EXPECT_GT(timer.milliseconds(), 0.0F);
}

class HardwareFault : public Hardware {};
GRADGUARD_ON_HARDWARE(HardwareFault);

/// In a process of its own, because a fault ends a context and cuda.h promises nothing to the process after it. 0: all
/// as it should be; the words of what is not go to standard error.
int fault_and_after(const std::shared_ptr<CudaDevice>& device, const std::shared_ptr<Queue>& queue) {
    const std::string wanted = "CUDA_ERROR_ILLEGAL_ADDRESS";
    int wrong = 0;
    const auto expect = [&](const char* what, const std::function<void()>& action) {
        try {
            action();
            std::cerr << what << ": no error; ";
            ++wrong;
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::kDeviceFailure && error.message().find(wanted) != std::string::npos) return;
            std::cerr << what << ": " << error.what() << "; ";
            ++wrong;
        }
    };
    const Tensor good = upload(queue, std::vector<float>(100, 1));
    const Tensor nowhere = Tensor::over(queue, DType::kF32, {100}, Buffer::borrowed(DeviceAddress{1} << 46U, 400));
    queue->synchronize();
    std::optional<AdamWUpdate> update;
    expect("the step or the wait", [&] {
        update = adamw_step(nowhere, good, std::nullopt, {}, {});
        queue->synchronize();
    });
    expect("the next wait", [&] { queue->synchronize(); });
    expect("an allocation", [&] { device->allocate(4, *queue); });
    expect("an upload", [&] { good.upload(std::vector<std::byte>(400)); });
    expect("a scan", [&] { gradient_stats_sync(std::vector<Tensor>{good}); });
    expect("a new queue", [&] { device->create_queue(); });
    return wrong;
}

TEST_P(HardwareFault, OfAKernelShowsAtTheWaitAndStaysUnderItsFirstName) {
    expect_findings();
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(std::_Exit(fault_and_after(device, queue)), ::testing::ExitedWithCode(0), "");
    EXPECT_EQ(step_in(queue, {place(kOne[0])}), "") << "in this process, which had no fault";
}

}  // namespace
}  // namespace gradguard::testing
