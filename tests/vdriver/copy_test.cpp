// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Copies : public InContext {
  protected:
    Copies() : InContext(R"({"seed": 3})") {}

    /// 0, 1, 2, ... in device memory.
    CUdeviceptr counting(std::size_t count) {
        const CUdeviceptr address = allocate(4 * count);
        std::vector<std::uint32_t> values(count);
        std::iota(values.begin(), values.end(), 0U);
        EXPECT_OK(cu.cuMemcpyHtoD_v2(address, values.data(), 4 * count));
        return address;
    }
    static CUdeviceptr number(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }
    using Words = std::vector<std::uint32_t>;
};

TEST_F(Copies, GoThereAndBackAndBetweenBuffers) {
    const CUdeviceptr a = counting(4), b = allocate(16);
    EXPECT_OK(cu.cuMemcpyDtoD_v2(b + 4, a, 12));
    EXPECT_OK(cu.cuMemcpyDtoD_v2(b, a + 12, 4));
    EXPECT_EQ(words(b, 4), (Words{3, 0, 1, 2}));
}

TEST_F(Copies, OfOneBufferMayOverlap) {
    const CUdeviceptr a = counting(8);
    EXPECT_OK(cu.cuMemcpyDtoD_v2(a + 4, a, 24));
    EXPECT_EQ(words(a, 8), (Words{0, 0, 1, 2, 3, 4, 5, 7}));
}

TEST_F(Copies, UnifiedAddressesTellHostFromDevice) {
    const CUdeviceptr a = counting(2);
    Words host(2, 9), other(2, 7);
    EXPECT_OK(cu.cuMemcpy(number(host.data()), a, 8));
    EXPECT_EQ(host, (Words{0, 1}));
    EXPECT_OK(cu.cuMemcpy(a, number(other.data()), 4));
    EXPECT_EQ(words(a, 2), (Words{7, 1}));
    EXPECT_OK(cu.cuMemcpy(number(host.data()), number(other.data()), 8));
    EXPECT_EQ(host, (Words{7, 7}));
    EXPECT_OK(cu.cuMemcpyAsync(a, a + 4, 4, nullptr));
    EXPECT_EQ(words(a, 2), (Words{1, 1}));
}

TEST_F(Copies, OutsideOfTheirBufferAreRefused) {
    const CUdeviceptr a = counting(2);
    Words host(8);
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(host.data(), a, 12), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(host.data(), a + 8, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemcpyHtoD_v2(0, host.data(), 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemcpyHtoD_v2(a, nullptr, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.cuMemcpyHtoD_v2(a, nullptr, 0));
    EXPECT_OK(cu.cuMemFree_v2(a));
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(host.data(), a, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, OfRowsTakeOffsetsAndPitches) {
    const CUdeviceptr a = counting(16);  // 4 x 4
    Words host(6, 99);                   // rows of 3
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a;
    copy.srcXInBytes = 4;
    copy.srcY = 2;
    copy.srcPitch = 16;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host.data();
    copy.dstPitch = 12;
    copy.WidthInBytes = 8;
    copy.Height = 2;
    EXPECT_OK(cu.cuMemcpy2D_v2(&copy));
    EXPECT_EQ(host, (Words{9, 10, 99, 13, 14, 99}));
    EXPECT_OK(cu.cuMemcpy2DUnaligned_v2(&copy));
    copy.Height = 3;
    EXPECT_EQ(cu.cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    EXPECT_EQ(cu.cuMemcpy2D_v2(&copy), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Copies, OfRowsFromPageableMemoryAreTakenAtOnce) {
    const CUdeviceptr a = allocate(16);
    Words host{1, 2, 3, 4, 5, 6};
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host.data();
    copy.srcPitch = 12;
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = a;
    copy.dstPitch = 8;
    copy.WidthInBytes = 8;
    copy.Height = 2;
    EXPECT_OK(cu.cuMemcpy2DAsync_v2(&copy, nullptr));
    host.assign(6, 0);
    EXPECT_EQ(words(a, 4), (Words{1, 2, 4, 5}));
}

TEST_F(Copies, OfBoxesTakeSlices) {
    const CUdeviceptr a = counting(24);  // 2 x 3 x 4
    Words host(4, 99);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a;
    copy.srcXInBytes = 8;
    copy.srcY = 1;
    copy.srcPitch = 16;
    copy.srcHeight = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host.data();
    copy.dstPitch = 4;
    copy.dstHeight = 2;
    copy.WidthInBytes = 4;
    copy.Height = 2;
    copy.Depth = 2;
    EXPECT_OK(cu.cuMemcpy3D_v2(&copy));
    EXPECT_EQ(host, (Words{6, 10, 18, 22}));
}

TEST_F(Copies, BetweenContextsNameBoth) {
    const CUdeviceptr a = counting(2);
    CUcontext other = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&other, 0, 0));
    const CUdeviceptr b = allocate(8);
    EXPECT_OK(cu.cuMemcpyPeer(b, other, a, context, 8));
    EXPECT_EQ(words(b, 2), (Words{0, 1}));
    EXPECT_OK(cu.cuCtxDestroy_v2(other));
}

TEST_F(Copies, SetsFillBytesHalvesWordsAndRows) {
    const CUdeviceptr a = counting(4);
    EXPECT_OK(cu.cuMemsetD8_v2(a, 0xAB, 3));
    EXPECT_OK(cu.cuMemsetD16_v2(a + 4, 0x1234, 2));
    EXPECT_OK(cu.cuMemsetD32Async(a + 8, 7, 1, nullptr));
    EXPECT_EQ(words(a, 4), (Words{0x00ABABAB, 0x12341234, 7, 3}));
    EXPECT_OK(cu.cuMemsetD2D32_v2(a, 8, 5, 1, 2));
    EXPECT_EQ(words(a, 4), (Words{5, 0x12341234, 5, 3}));
    EXPECT_EQ(cu.cuMemsetD32_v2(a + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemsetD32_v2(a, 0, 5), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, OfVariablesOfAModule) {
    const CUmodule module = load(kKernels);
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    EXPECT_OK(cu.cuModuleGetGlobal_v2(&address, &bytes, module, "counter"));
    EXPECT_EQ(bytes, 4U);
    EXPECT_EQ(words(address, 1), (Words{7}));
    EXPECT_OK(cu.cuModuleGetGlobal_v2(&address, &bytes, module, "table"));
    EXPECT_EQ(bytes, 16U);
    EXPECT_EQ(words(address, 1), (Words{0x04030201}));
    EXPECT_EQ(cu.cuModuleGetGlobal_v2(&address, &bytes, module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace gradguard::cuda
