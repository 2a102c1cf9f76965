// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <set>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class MemoryOf : public InContext {
  protected:
    MemoryOf() : InContext(R"({"limits": {"memory_bytes": 1048576}})") {}

    template <class Value>
    Value attribute(CUdeviceptr address, int which) {
        Value value{};
        EXPECT_OK(cu.cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(which), address));
        return value;
    }
    static CUdeviceptr number(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }
};

TEST_F(MemoryOf, DevicesIsGrantedUpToTheLimit) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cu.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemAlloc_v2(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemAlloc_v2(&address, 1048577), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cu.cuMemAlloc_v2(&address, 1048576));
    std::size_t available = 1, total = 0;
    EXPECT_OK(cu.cuMemGetInfo_v2(&available, &total));
    EXPECT_EQ(available, 0U);
    EXPECT_EQ(total, 1048576U);
    EXPECT_OK(cu.cuMemFree_v2(address));
    EXPECT_OK(cu.cuMemGetInfo_v2(&available, &total));
    EXPECT_EQ(available, 1048576U);
}

TEST_F(MemoryOf, DevicesIsFreedOnceByItsFirstAddress) {
    const CUdeviceptr address = allocate(64);
    EXPECT_EQ(cu.cuMemFree_v2(address + 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.cuMemFree_v2(address));
    EXPECT_EQ(cu.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.cuMemFree_v2(0));
}

TEST_F(MemoryOf, DevicesIsFreedWhenQueuedWorkIsDone) {
    CUdeviceptr address = allocate(4);
    std::uint32_t value = 1, count = 1;
    for (int i = 0; i < 10; ++i) EXPECT_OK(launch(kernel("fill"), 1, 1, nullptr, {&address, &value, &count}));
    EXPECT_OK(cu.cuMemFree_v2(address));
    EXPECT_OK(cu.cuCtxSynchronize());
}

TEST_F(MemoryOf, DevicesIsKnownByItsRange) {
    const CUdeviceptr address = allocate(100);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_OK(cu.cuMemGetAddressRange_v2(&base, &bytes, address + 99));
    EXPECT_EQ(base, address);
    EXPECT_EQ(bytes, 100U);
    EXPECT_EQ(cu.cuMemGetAddressRange_v2(&base, &bytes, address + 100), CUDA_ERROR_NOT_FOUND);
}

TEST_F(MemoryOf, PitchedRowsBeginAtMultiplesOf512) {
    CUdeviceptr address = 0;
    std::size_t pitch = 0;
    EXPECT_OK(cu.cuMemAllocPitch_v2(&address, &pitch, 513, 3, 4));
    EXPECT_EQ(pitch, 1024U);
    EXPECT_EQ(attribute<std::size_t>(address, CU_POINTER_ATTRIBUTE_RANGE_SIZE), 3072U);
    EXPECT_EQ(cu.cuMemAllocPitch_v2(&address, &pitch, 513, 3, 5), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryOf, PointersSayWhatTheyBelongTo) {
    const CUdeviceptr device = allocate(64);
    void* host = nullptr;
    EXPECT_OK(cu.cuMemHostAlloc(&host, 64, 0));
    CUdeviceptr managed = 0;
    EXPECT_OK(cu.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(attribute<unsigned>(device, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(attribute<unsigned>(number(host), CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_HOST);
    EXPECT_EQ(attribute<unsigned>(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED), 1U);
    EXPECT_EQ(attribute<unsigned>(device, CU_POINTER_ATTRIBUTE_IS_MANAGED), 0U);
    EXPECT_EQ(attribute<int>(device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 0);
    EXPECT_EQ(attribute<CUcontext>(device + 8, CU_POINTER_ATTRIBUTE_CONTEXT), context);
    EXPECT_EQ(attribute<CUdeviceptr>(device + 8, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), device);
    EXPECT_EQ(attribute<void*>(number(host) + 8, CU_POINTER_ATTRIBUTE_HOST_POINTER), static_cast<char*>(host) + 8);
    EXPECT_NE(attribute<unsigned long long>(device, CU_POINTER_ATTRIBUTE_BUFFER_ID),
              attribute<unsigned long long>(managed, CU_POINTER_ATTRIBUTE_BUFFER_ID));
}

TEST_F(MemoryOf, PageableMemoryHasNoAttributesButZeros) {
    int local = 0;
    unsigned type = 7, managed = 7;
    EXPECT_EQ(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, number(&local)),
              CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   static_cast<CUpointer_attribute>(CU_POINTER_ATTRIBUTE_IS_MANAGED)};
    void* values[] = {&type, &managed};
    EXPECT_OK(cu.cuPointerGetAttributes(2, which, values, number(&local)));
    EXPECT_EQ(type, 0U);
    EXPECT_EQ(managed, 0U);
}

TEST_F(MemoryOf, PinnedIsUsedByKernelsAtItsOwnAddress) {
    void* host = nullptr;
    EXPECT_OK(cu.cuMemAllocHost_v2(&host, 8));
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemHostGetDevicePointer_v2(&address, host, 0));
    EXPECT_EQ(address, number(host));
    unsigned flags = 0;
    EXPECT_OK(cu.cuMemHostGetFlags(&flags, host));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_MEMHOSTALLOC_DEVICEMAP));
    std::uint32_t value = 3, count = 2;
    EXPECT_OK(launch(kernel("fill"), 1, 2, nullptr, {&address, &value, &count}));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(static_cast<std::uint32_t*>(host)[1], 3U);
    EXPECT_OK(cu.cuMemFreeHost(host));
    EXPECT_EQ(cu.cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryOf, ManyPinnedAndManagedBlocksHaveAddressesOfTheirOwn) {
    std::set<CUdeviceptr> seen;
    for (int i = 0; i < 300; ++i) {
        CUdeviceptr managed = 0;
        ASSERT_OK(cu.cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
        *reinterpret_cast<int*>(managed) = i;
        EXPECT_TRUE(seen.insert(managed).second);
    }
    for (const CUdeviceptr address : seen) EXPECT_OK(cu.cuMemFree_v2(address));
}

TEST_F(MemoryOf, PinnedBeyondItsEndIsOutOfBoundsForAKernel) {
    void* host = nullptr;
    EXPECT_OK(cu.cuMemAllocHost_v2(&host, 8));
    CUdeviceptr address = number(host);
    std::uint32_t value = 3, count = 3;
    EXPECT_OK(launch(kernel("fill"), 1, 3, nullptr, {&address, &value, &count}));
    EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(MemoryOf, ManagedIsSharedByHostAndKernels) {
    CUdeviceptr data = 0;
    EXPECT_OK(cu.cuMemAllocManaged(&data, 8, CU_MEM_ATTACH_GLOBAL));
    auto* const words = reinterpret_cast<std::uint32_t*>(data);
    words[0] = 10, words[1] = 20;
    std::uint32_t count = 2;
    EXPECT_OK(cu.cuMemPrefetchAsync(data, 8, 0, nullptr));
    EXPECT_OK(cu.cuMemAdvise(data, 8, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    EXPECT_EQ(cu.cuMemAdvise(data, 8, 99, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuMemAdvise(allocate(8), 8, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(launch(kernel("add_one"), 1, 2, nullptr, {&data, &count}));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(words[0], 11U);
    EXPECT_EQ(words[1], 21U);
    EXPECT_OK(cu.cuMemFree_v2(data));
}

TEST_F(MemoryOf, TheProgramsOwnIsRegisteredOnce) {
    std::vector<std::uint32_t> own(4, 5);
    EXPECT_OK(cu.cuMemHostRegister_v2(own.data(), 16, 0));
    EXPECT_EQ(cu.cuMemHostRegister_v2(own.data() + 1, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemHostGetDevicePointer_v2(&address, own.data(), 0));
    std::uint32_t count = 4;
    EXPECT_OK(launch(kernel("add_one"), 1, 4, nullptr, {&address, &count}));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(own, (std::vector<std::uint32_t>{6, 6, 6, 6}));
    EXPECT_OK(cu.cuMemHostUnregister(own.data()));
    EXPECT_EQ(cu.cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(MemoryOf, PoolsCountAndFreeInTheStreamsOrder) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_OK(cu.cuMemPoolCreate(&pool, &properties));
    std::uint64_t threshold = UINT64_MAX, used = 0;
    EXPECT_OK(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemAllocFromPoolAsync(&address, 64, pool, nullptr));
    const auto in_use = static_cast<CUmemPool_attribute>(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    EXPECT_OK(cu.cuMemPoolGetAttribute(pool, in_use, &used));
    EXPECT_EQ(used, 64U);
    EXPECT_EQ(attribute<CUmemoryPool>(address, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), pool);
    std::uint32_t value = 1, count = 1;
    EXPECT_OK(launch(kernel("fill"), 1, 1, nullptr, {&address, &value, &count}));
    EXPECT_OK(cu.cuMemFreeAsync(address, nullptr));
    EXPECT_EQ(cu.cuMemFreeAsync(address, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_OK(cu.cuMemPoolGetAttribute(pool, in_use, &used));
    EXPECT_EQ(used, 0U);
    EXPECT_OK(cu.cuMemPoolTrimTo(pool, 0));
    EXPECT_OK(cu.cuMemPoolDestroy(pool));
    EXPECT_EQ(cu.cuMemAllocFromPoolAsync(&address, 64, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryOf, TheDefaultPoolStays) {
    CUmemoryPool pool = nullptr;
    EXPECT_OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_EQ(cu.cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemAllocAsync(&address, 64, nullptr));
    EXPECT_OK(cu.cuMemFree_v2(address));
}

TEST_F(MemoryOf, PoolMemoryThatIsFreedOnAnotherStreamTooEarlyIsFound) {
    // Some order of the streams frees it before the kernel runs.
    bool found = false;
    for (int seed = 1; seed <= 64 && !found; ++seed) {
        restart(R"({"seed": )" + std::to_string(seed) + "}");
        CUstream work = nullptr, other = nullptr;
        EXPECT_OK(cu.cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
        EXPECT_OK(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        CUdeviceptr address = 0;
        std::uint32_t value = 1, count = 1;
        EXPECT_OK(cu.cuMemAllocAsync(&address, 4, work));
        EXPECT_OK(launch(kernel("fill"), 1, 1, work, {&address, &value, &count}));
        EXPECT_OK(cu.cuMemFreeAsync(address, other));
        if (cu.cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS) continue;
        const nlohmann::json finding = cu.parsed_report()["findings"][0];
        EXPECT_EQ(finding["kind"], "use after free");
        EXPECT_EQ(finding["kernel"], "fill");
        found = true;
    }
    EXPECT_TRUE(found);
}

}  // namespace
}  // namespace gradguard::cuda
