// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

using Json = nlohmann::json;

class Reports : public InContext {
  protected:
    explicit Reports(const std::string& configuration = "{}") : InContext(configuration) {}
    Json kernel_report(const std::string& name) {
        const Json report = cu.parsed_report();
        for (const Json& entry : report["kernels"]) {
            if (entry["kernel"] == name) return entry;
        }
        return nullptr;
    }
    CUresult address_of(const char* name, void** function, int version, int* status) {
        CUresult (*get)(const char*, void**, int, std::uint64_t, int*) = nullptr;
        look_up(get, "cuGetProcAddress_v2");
        return get(name, function, version, 0, status);
    }
    void run(const char* name, unsigned threads, std::vector<void*> arguments) {
        EXPECT_OK(launch(kernel(name), 1, threads, nullptr, std::move(arguments)));
        EXPECT_OK(cu.cuCtxSynchronize());
    }
};

TEST_F(Reports, CountLaunchesByKernel) {
    for (int i = 0; i < 3; ++i) run("empty", 64, {});
    const Json entry = kernel_report("empty");
    EXPECT_EQ(entry["launches"], 3);
    EXPECT_EQ(entry["failed_launches"], 0);
    EXPECT_EQ(entry["blocks"], 3);
    EXPECT_EQ(entry["lane_instructions"], 3 * 64);
    EXPECT_EQ(cu.parsed_report()["device"], "virtual driver");
}

TEST_F(Reports, NameFlushingInstructionsWithoutCounting) {
    CUdeviceptr data = allocate(4);
    EXPECT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    run("flushing", 1, {&data});
    const Json flushing = kernel_report("flushing")["flushing_instructions"];
    EXPECT_EQ(flushing, Json::parse(R"({"mul.rn.ftz.f32": null})"));
}

class Counted : public Reports {
  protected:
    Counted() : Reports(R"({"count": true})") {}
};

TEST_F(Counted, FlushingInstructionsAreCountedInLanes) {
    CUdeviceptr data = allocate(4);
    EXPECT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    run("flushing", 5, {&data});
    const Json entry = kernel_report("flushing");
    EXPECT_EQ(entry["flushing_instructions"]["mul.rn.ftz.f32"], 5);
    EXPECT_EQ(entry["instructions"]["ld.global.f32"], 5);
    EXPECT_EQ(entry["global_read"]["bytes"], 20);
    EXPECT_EQ(entry["global_written"]["sectors"], 1);
}

class Watched : public Reports {
  protected:
    explicit Watched(const std::string& configuration = R"({"observers": "all"})") : Reports(configuration) {}
};

TEST_F(Watched, ARaceIsFoundWithKernelAndSourceLine) {
    CUdeviceptr out = allocate(256);
    run("racy", 64, {&out});
    const Json findings = cu.parsed_report()["findings"];
    // The write of one warp and the read of the other, in whatever order they came.
    const auto race = std::find_if(findings.begin(), findings.end(), [](const Json& f) {
        return f["kind"] == "race" && f["source_line"] != f["other"]["source_line"];
    });
    ASSERT_NE(race, findings.end()) << findings;
    EXPECT_EQ((*race)["kernel"], "racy");
    EXPECT_EQ((*race)["source_file"], "kernels_of_the_test.cu");
    EXPECT_EQ((*race)["source_line"].get<int>() + (*race)["other"]["source_line"].get<int>(), 42 + 43);
    EXPECT_EQ((*race)["space"], "shared");
}

TEST_F(Watched, MemoryThatNobodyWroteIsFound) {
    CUdeviceptr data = allocate(4);
    std::uint32_t count = 1;
    run("add_one", 1, {&data, &count});
    const Json findings = cu.parsed_report()["findings"];
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0]["kind"], "uninitialized read");
}

TEST_F(Watched, ACleanProgramHasNoFindings) {
    CUdeviceptr data = allocate(64);
    std::uint32_t value = 1, count = 16;
    run("fill", 16, {&data, &value, &count});
    run("add_one", 16, {&data, &count});
    const Json report = cu.parsed_report();
    EXPECT_TRUE(report["findings"].empty()) << report["findings"];
    EXPECT_GT(report["checked"]["bounds"]["accesses"], 0);
    EXPECT_EQ(report["live"]["allocations"].size(), 1U);
    EXPECT_EQ(report["live"]["allocations"][0]["bytes"], 64);
}

TEST_F(Watched, FindingsOfContextsThatAreGoneStay) {
    CUdeviceptr out = allocate(256);
    run("racy", 64, {&out});
    const std::size_t before = cu.parsed_report()["findings"].size();
    EXPECT_OK(cu.cuDevicePrimaryCtxReset_v2(0));
    EXPECT_EQ(cu.parsed_report()["findings"].size(), before);
    EXPECT_GT(before, 0U);
}

class Leaks : public Watched {
  protected:
    Leaks() : Watched(R"({"observers": "leaks"})") {}
};

TEST_F(Leaks, AreFindingsOnRequest) {
    const CUdeviceptr kept = allocate(8), freed = allocate(16);
    EXPECT_OK(cu.cuMemFree_v2(freed));
    const Json findings = cu.parsed_report()["findings"];
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0]["kind"], "leak");
    EXPECT_EQ(findings[0]["allocation_bytes"], 8);
    EXPECT_OK(cu.cuMemFree_v2(kept));
    EXPECT_TRUE(cu.parsed_report()["findings"].empty());
}

// ---- what is missing -----------------------------------------------------------------------------------------------

TEST_F(Reports, WhatIsMissingIsSaidOnceAndCounted) {
    ::testing::internal::CaptureStderr();
    CUresult (*lacking)(void**) = nullptr;
    look_up(lacking, "cuTexRefCreate");
    void* reference = nullptr;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(lacking(&reference), CUDA_ERROR_NOT_SUPPORTED);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said, "gradguard virtual driver: cuTexRefCreate is not supported (CUDA_ERROR_NOT_SUPPORTED)\n");
    EXPECT_EQ(cu.parsed_report()["not_supported"]["cuTexRefCreate"], 3);
}

TEST_F(Reports, EveryFunctionOfTheApiIsThere) {
    std::size_t missing = 0;
#define GRADGUARD_DRIVER_FUNCTION(symbol, base, since, per_thread) \
    if (dlsym(loaded_library(), #symbol) == nullptr) ++missing;
#include "harness/vdriver/driver_functions.inc"
#undef GRADGUARD_DRIVER_FUNCTION
    EXPECT_EQ(missing, 0U);
}

// ---- cuGetProcAddress ----------------------------------------------------------------------------------------------

TEST_F(Reports, NamesWithoutVersionGiveTheFormThatTheVersionHas) {
    void* function = nullptr;
    int status = -1;
    EXPECT_OK(address_of("cuMemAlloc", &function, 12000, &status));
    EXPECT_EQ(function, reinterpret_cast<void*>(cu.cuMemAlloc_v2));
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_OK(cu.cuGetProcAddress("cuGetProcAddress", &function, 11030, 0));
    EXPECT_EQ(function, reinterpret_cast<void*>(cu.cuGetProcAddress));
    EXPECT_OK(cu.cuGetProcAddress("cuGetProcAddress", &function, 12000, 0));
    EXPECT_EQ(function, dlsym(loaded_library(), "cuGetProcAddress_v2"));
}

TEST_F(Reports, NamesThatTheVersionLacksAndUnknownNamesHaveNoAddress) {
    void* function = &function;
    int status = -1;
    EXPECT_OK(address_of("cuMemAllocAsync", &function, 11000, &status));
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ::testing::internal::CaptureStderr();
    EXPECT_OK(address_of("cuMakeCoffee", &function, 12000, &status));
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(cu.cuGetProcAddress("cuMakeCoffee", &function, 12000, 0), CUDA_ERROR_NOT_FOUND);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said, "gradguard virtual driver: cuMakeCoffee is not supported (CUDA_ERROR_NOT_SUPPORTED)\n");
    EXPECT_EQ(address_of("cuInit", &function, 99000, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(address_of(nullptr, &function, 12000, &status), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reports, ExportTablesAreNotSupportedQuietly) {
    ::testing::internal::CaptureStderr();
    const void* table = &table;
    CUuuid id{};
    EXPECT_EQ(cu.cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// ---- control -------------------------------------------------------------------------------------------------------

TEST_F(Reports, APlannedFailureHappensOnceAndDoesNothing) {
    const std::uint64_t before = cu.calls();
    cu.fail_call(1, CUDA_ERROR_UNKNOWN);
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&address, 4));
    EXPECT_EQ(cu.cuMemFree_v2(address), CUDA_ERROR_UNKNOWN);
    EXPECT_OK(cu.cuMemFree_v2(address));
    EXPECT_EQ(cu.calls(), before + 3);
    cu.fail_call(0, CUDA_ERROR_UNKNOWN);
    cu.fail_call(0, CUDA_SUCCESS);
    EXPECT_OK(cu.cuCtxSynchronize());
}

/// A whole program; the first code that is no success, or success.
CUresult program(const Api& cu) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr data = 0;
    std::uint32_t count = 1, value = 20;
    void* arguments[] = {&data, &count};
    const std::function<CUresult()> calls[] = {
        [&] { return cu.cuInit(0); },
        [&] { return cu.cuDevicePrimaryCtxRetain(&context, 0); },
        [&] { return cu.cuCtxSetCurrent(context); },
        [&] { return cu.cuModuleLoadData(&module, kKernels); },
        [&] { return cu.cuModuleGetFunction(&function, module, "add_one"); },
        [&] { return cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); },
        [&] { return cu.cuMemAllocAsync(&data, 4, stream); },
        [&] { return cu.cuMemcpyHtoDAsync_v2(data, &value, 4, stream); },
        [&] { return cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr); },
        [&] { return cu.cuMemcpyDtoHAsync_v2(&value, data, 4, stream); },
        [&] { return cu.cuMemFreeAsync(data, stream); },
        [&] { return cu.cuStreamSynchronize(stream); },
        [&] { return cu.cuStreamDestroy_v2(stream); },
        [&] { return cu.cuModuleUnload(module); },
        [&] { return cu.cuDevicePrimaryCtxRelease_v2(0); }};
    for (const auto& each : calls) {
        if (const CUresult result = each(); result != CUDA_SUCCESS) return result;
    }
    EXPECT_EQ(value, 21U);
    return CUDA_SUCCESS;
}

TEST_F(Reports, EveryCallOfAProgramCanBeMadeToFail) {
    std::uint64_t failed = 0;
    for (;; ++failed) {
        cu.reset();
        cu.fail_call(failed, CUDA_ERROR_SYSTEM_NOT_READY);
        const CUresult result = program(cu);
        if (result == CUDA_SUCCESS) break;
        ASSERT_EQ(result, CUDA_ERROR_SYSTEM_NOT_READY) << failed;
        EXPECT_EQ(cu.calls(), failed + 1);
    }
    EXPECT_EQ(failed, 15U);
}

TEST_F(Reports, ConfigurationWaitsUntilNoContextIsAlive) {
    EXPECT_EQ(cu.configure("{}"), CUDA_ERROR_NOT_PERMITTED);
    EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    EXPECT_EQ(cu.configure(R"({"seed": 9})"), 0);
    EXPECT_EQ(cu.parsed_report()["configuration"]["seed"], 9);
}

TEST_F(Reports, WrongConfigurationsAreRefusedInWords) {
    cu.reset();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(cu.configure("{"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.configure(R"({"seeds": 1})"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.configure(R"({"seed": -1})"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.configure(R"({"observers": "ghosts"})"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.configure(R"({"compute_capability": "eight"})"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.configure(nullptr), CUDA_ERROR_INVALID_VALUE);
    const std::string said = ::testing::internal::GetCapturedStderr();
    for (const char* part : {"not JSON", "unknown member \"seeds\"", "\"seed\" must be a whole number", "ghosts",
                             "\"compute_capability\" must be"})
        EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST_F(Reports, AShortBufferHoldsTheBeginning) {
    char buffer[9] = "12345678";
    const std::size_t length = cu.report(buffer, sizeof buffer);
    EXPECT_GT(length, sizeof buffer);
    EXPECT_EQ(std::string(buffer).size(), sizeof buffer - 1);
    EXPECT_EQ(buffer[0], '{');
}

}  // namespace
}  // namespace gradguard::cuda
