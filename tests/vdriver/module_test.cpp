// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/support/temporary_folder.h"
#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Modules : public InContext {
  protected:
    explicit Modules(const std::string& configuration = "{}") : InContext(configuration) {}

    int attribute(CUfunction function, int which) {
        int value = -1;
        EXPECT_OK(cu.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(which), function));
        return value;
    }
    CUresult load_result(const void* image) {
        CUmodule module = nullptr;
        return cu.cuModuleLoadData(&module, image);
    }
};

TEST_F(Modules, GiveTheSameHandleForTheSameKernel) {
    const CUmodule module = load(kKernels);
    CUfunction first = nullptr, second = nullptr;
    EXPECT_OK(cu.cuModuleGetFunction(&first, module, "fill"));
    EXPECT_OK(cu.cuModuleGetFunction(&second, module, "fill"));
    EXPECT_EQ(first, second);
    EXPECT_EQ(cu.cuModuleGetFunction(&first, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    CUmodule of = nullptr;
    EXPECT_OK(cu.cuFuncGetModule(&of, second));
    EXPECT_EQ(of, module);
    const char* name = nullptr;
    EXPECT_OK(cu.cuFuncGetName(&name, second));
    EXPECT_STREQ(name, "fill");
}

TEST_F(Modules, TakeTheirKernelsAndVariablesWithThem) {
    const CUmodule module = load(kKernels);
    CUfunction function = nullptr;
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuModuleGetFunction(&function, module, "empty"));
    EXPECT_OK(cu.cuModuleGetGlobal_v2(&address, nullptr, module, "counter"));
    EXPECT_OK(cu.cuModuleUnload(module));
    EXPECT_EQ(cu.cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(launch(function, 1, 1, nullptr, {}), CUDA_ERROR_INVALID_HANDLE);
    std::uint32_t value;
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(&value, address, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, AreReadFromFiles) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.write("some.ptx", kKernels);
    CUmodule module = nullptr;
    EXPECT_OK(cu.cuModuleLoad(&module, path.c_str()));
    EXPECT_EQ(cu.cuModuleLoad(&module, "/nowhere/some.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(Modules, KernelsTellWhatTheyNeed) {
    EXPECT_EQ(attribute(kernel("fill"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    EXPECT_EQ(attribute(kernel("small_block"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
    EXPECT_EQ(attribute(kernel("shared_user"), CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
    EXPECT_EQ(attribute(kernel("fill"), CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 16);
    EXPECT_EQ(attribute(kernel("fill"), CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
    EXPECT_EQ(attribute(kernel("fill"), CU_FUNC_ATTRIBUTE_PTX_VERSION), 80);
    std::size_t offset = 0, bytes = 0;
    EXPECT_OK(cu.cuFuncGetParamInfo(kernel("fill"), 1, &offset, &bytes));
    EXPECT_EQ(offset, 8U);
    EXPECT_EQ(bytes, 4U);
    EXPECT_EQ(cu.cuFuncGetParamInfo(kernel("fill"), 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, KernelsMayAskForMoreSharedMemory) {
    const CUfunction function = kernel("shared_user");
    constexpr auto kMost = static_cast<CUfunction_attribute>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    CUdeviceptr out = allocate(4);
    EXPECT_EQ(attribute(function, kMost), 48128);
    EXPECT_EQ(launch(function, 1, 1, nullptr, {&out}, 60000), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuFuncSetAttribute(function, kMost, 170000), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.cuFuncSetAttribute(function, kMost, 60000));
    EXPECT_OK(launch(function, 1, 1, nullptr, {&out}, 60000));
    EXPECT_EQ(words(out, 1)[0], 60000U);
    EXPECT_EQ(cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, OccupancyFollowsThreadsAndSharedMemory) {
    int blocks = 0;
    EXPECT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("fill"), 256, 0));
    EXPECT_EQ(blocks, 8);
    EXPECT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("fill"), 32, 0));
    EXPECT_EQ(blocks, 32);
    EXPECT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("fill"), 32, 40960));
    EXPECT_EQ(blocks, 4);
    EXPECT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("small_block"), 65, 0));
    EXPECT_EQ(blocks, 0);
    int grid = 0, block = 0;
    EXPECT_OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("fill"), nullptr, 0, 0));
    EXPECT_EQ(block, 1024);
    EXPECT_EQ(grid, 2 * 108);
    EXPECT_OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("fill"), nullptr, 0, 100));
    EXPECT_EQ(block, 64);  // 32 blocks of it fill a multiprocessor, which 21 of 96 do not
    std::size_t bytes = 0;
    EXPECT_OK(cu.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, kernel("fill"), 8, 256));
    EXPECT_EQ(bytes, 19968U);
}

TEST_F(Modules, LibrariesBelongToNoContextAndTheirKernelsLaunch) {
    CUlibrary library = nullptr;
    EXPECT_OK(cu.cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    unsigned count = 0;
    EXPECT_OK(cu.cuLibraryGetKernelCount(&count, library));
    EXPECT_EQ(count, 11U);
    CUkernel fill = nullptr;
    EXPECT_OK(cu.cuLibraryGetKernel(&fill, library, "fill"));
    EXPECT_EQ(cu.cuLibraryGetKernel(&fill, library, "nothing"), CUDA_ERROR_NOT_FOUND);
    CUfunction function = nullptr;
    EXPECT_OK(cu.cuKernelGetFunction(&function, fill));
    CUdeviceptr out = allocate(8);
    std::uint32_t value = 4, elements = 2;
    EXPECT_OK(launch(function, 1, 1, nullptr, {&out, &value, &elements}));
    // A kernel may stand where a function does.
    EXPECT_OK(launch(reinterpret_cast<CUfunction>(fill), 1, 2, nullptr, {&out, &value, &elements}));
    EXPECT_EQ(words(out, 2), (std::vector<std::uint32_t>{4, 4}));
    CUmodule module = nullptr;
    EXPECT_OK(cu.cuLibraryGetModule(&module, library));
    EXPECT_EQ(cu.cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
    EXPECT_OK(cu.cuLibraryUnload(library));
    EXPECT_EQ(launch(function, 1, 1, nullptr, {&out, &value, &elements}), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Modules, KernelsOfLibrariesKeepTheirAttributes) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    EXPECT_OK(cu.cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    EXPECT_OK(cu.cuLibraryGetKernel(&kernel, library, "shared_user"));
    int value = 0;
    EXPECT_OK(cu.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, 0));
    EXPECT_EQ(value, 1024);
    constexpr auto kMost = static_cast<CUfunction_attribute>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    EXPECT_OK(cu.cuKernelSetAttribute(kMost, 65536, kernel, 0));
    CUdeviceptr out = allocate(4);
    EXPECT_OK(launch(reinterpret_cast<CUfunction>(kernel), 1, 1, nullptr, {&out}, 65536));
    EXPECT_OK(cu.cuCtxSynchronize());
}

TEST_F(Modules, TheLinkerMakesOneModuleOfSeveral) {
    constexpr char kOther[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry other() { ret; }
)";
    CUlinkState state = nullptr;
    EXPECT_OK(cu.cuLinkCreate_v2(0, nullptr, nullptr, &state));
    EXPECT_OK(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(kKernels), std::strlen(kKernels) + 1,
                                  "kernels.ptx", 0, nullptr, nullptr));
    EXPECT_OK(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(kOther), sizeof kOther, "other.ptx", 0,
                                  nullptr, nullptr));
    void* image = nullptr;
    std::size_t size = 0;
    EXPECT_OK(cu.cuLinkComplete(state, &image, &size));
    CUmodule module = nullptr;
    EXPECT_OK(cu.cuModuleLoadData(&module, image));
    CUfunction function = nullptr;
    EXPECT_OK(cu.cuModuleGetFunction(&function, module, "other"));
    EXPECT_OK(cu.cuModuleGetFunction(&function, module, "fill"));
    EXPECT_OK(cu.cuLinkDestroy(state));
    EXPECT_EQ(cu.cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
}

// ---- what is refused -----------------------------------------------------------------------------------------------

/// The last module that was refused, in words.
std::string refusal(const Api& cu) { return cu.parsed_report()["refused"].back(); }

TEST_F(Modules, OfMachineCodeAreRefusedWithWhatToDo) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(load_result("\177ELF\2\1\1"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("machine code (a cubin)"), std::string::npos) << said;
    EXPECT_NE(said.find("nvcc -ptx"), std::string::npos) << said;
}

/// A fat binary with one part.
std::string fatbin(std::uint16_t kind, const std::string& payload, std::uint64_t whole_bytes) {
    const auto put = [](std::string& to, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
    };
    std::string part;
    put(part, kind, 2);
    put(part, 0x101, 2);
    put(part, 64, 4);
    put(part, payload.size(), 8);
    put(part, whole_bytes != 0 ? payload.size() : 0, 4);
    put(part, 0, 8);
    put(part, 80, 4);
    put(part, 0, 24);
    put(part, whole_bytes, 8);
    std::string all;
    put(all, 0xBA55ED50, 4);
    put(all, 1, 2);
    put(all, 16, 2);
    put(all, part.size() + payload.size(), 8);
    return all + part + payload;
}

TEST_F(Modules, OfFatBinariesGiveTheirPtx) {
    const std::string image = fatbin(1, std::string(kKernels) + '\0', 0);
    CUmodule module = nullptr;
    EXPECT_OK(cu.cuModuleLoadFatBinary(&module, image.data()));
    struct {
        std::uint32_t magic = 0x466243B1;
        std::uint32_t version = 1;
        const void* data;
        void* unused = nullptr;
    } wrapper;
    wrapper.data = image.data();
    EXPECT_OK(cu.cuModuleLoadFatBinary(&module, &wrapper));
}

TEST_F(Modules, OfFatBinariesWithoutPtxAreRefusedInWords) {
    EXPECT_EQ(load_result(fatbin(2, "machine code", 0).data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_NE(refusal(cu).find("machine code only (no PTX)"), std::string::npos) << refusal(cu);
    EXPECT_EQ(load_result(fatbin(1, "squeezed", 4000).data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_NE(refusal(cu).find("compressed"), std::string::npos) << refusal(cu);
}

TEST_F(Modules, OfFilesThatAreCutShortAreRefusedAtEveryLength) {
    const testing::TemporaryFolder folder;
    const std::string whole = fatbin(1, std::string("// nothing") + '\0', 0);
    for (std::size_t size = 4; size < whole.size(); ++size) {
        CUmodule module = nullptr;
        const std::string path = folder.write("cut.fatbin", whole.substr(0, size));
        EXPECT_EQ(cu.cuModuleLoad(&module, path.c_str()), CUDA_ERROR_INVALID_IMAGE) << size;
    }
    const std::string wrapper = folder.write("wrapper", std::string("\xB1\x43\x62\x46") + std::string(20, '\1'));
    CUmodule module = nullptr;
    EXPECT_EQ(cu.cuModuleLoad(&module, wrapper.c_str()), CUDA_ERROR_INVALID_PTX);
}

TEST_F(Modules, OfWrongPtxAreRefusedWithLineAndInstruction) {
    constexpr char kWrong[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\n  bogus.f32;\n}\n";
    char log[200] = "old", info[10] = "old";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log), info, reinterpret_cast<void*>(sizeof info)};
    CUmodule module = nullptr;
    EXPECT_EQ(cu.cuModuleLoadDataEx(&module, kWrong, 4, options, values), CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(std::string(log).find(".ptx:6: "), std::string::npos) << log;
    EXPECT_NE(std::string(log).find("bogus.f32"), std::string::npos) << log;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values[1]), std::strlen(log) + 1);
    EXPECT_STREQ(info, "");
    EXPECT_EQ(refusal(cu), log);
}

TEST_F(Modules, ErrorLogsAreCutWhereTheBufferEnds) {
    char log[8] = "old";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
    void* values[] = {reinterpret_cast<void*>(sizeof log), log};
    CUmodule module = nullptr;
    EXPECT_EQ(cu.cuModuleLoadDataEx(&module, "no ptx at all", 2, options, values), CUDA_ERROR_INVALID_PTX);
    EXPECT_EQ(std::strlen(log), sizeof log - 1);
}

TEST_F(Modules, NullImagesAndMissingHandlesAreInvalid) {
    EXPECT_EQ(load_result(nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuModuleLoadData(nullptr, kKernels), CUDA_ERROR_INVALID_VALUE);
    CUfunction function;
    EXPECT_EQ(cu.cuModuleGetFunction(&function, nullptr, "fill"), CUDA_ERROR_INVALID_HANDLE);
    int value;
    EXPECT_EQ(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cu.cuModuleLoadDataEx(nullptr, kKernels, 0, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

class OldDriver : public Modules {
  protected:
    OldDriver() : Modules(R"({"driver_version": 11080})") {}
};

TEST_F(OldDriver, RefusesPtxThatIsNewer) {
    EXPECT_EQ(load_result(".version 8.0\n.target sm_80\n.address_size 64\n"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    EXPECT_NE(refusal(cu).find("PTX version 8.0 is newer than a driver of CUDA 11.8 takes"), std::string::npos)
        << refusal(cu);
    EXPECT_OK(load_result(".version 7.8\n.target sm_80\n.address_size 64\n"));
}

TEST_F(Modules, ApproximateInstructionsAreRefusedUnlessAllowed) {
    constexpr char kApproximate[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\n  .reg .f32 %f<3>;\n  mov.f32 %f1, "
        "0f40000000;\n  sqrt.approx.f32 %f2, %f1;\n  ret;\n}\n";
    EXPECT_EQ(load_result(kApproximate), CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(refusal(cu).find("allow_approximate"), std::string::npos) << refusal(cu);
    restart(R"({"allow_approximate": true})");
    EXPECT_OK(load_result(kApproximate));
}

}  // namespace
}  // namespace gradguard::cuda
