// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Device : public Driver {
  protected:
    Device()
        : Driver(R"({"driver_version": 12040, "compute_capability": "9.0",
                          "limits": {"threads_per_block": 128, "grid": [1000, 20, 3], "memory_bytes": 1048576,
                                     "shared_bytes_per_block": 3072}})") {}
    int attribute(int which) {
        int value = -1;
        EXPECT_OK(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(which), 0));
        return value;
    }
};

TEST(BeforeInit, CallsAnswerNotInitialized) {
    const Api& cu = api();
    cu.reset();
    int count = 0;
    EXPECT_EQ(cu.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CUdeviceptr address = 0;
    EXPECT_EQ(cu.cuMemAlloc_v2(&address, 4), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cu.cuStreamSynchronize(nullptr), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(BeforeInit, VersionAndErrorNamesAreTold) {
    const Api& cu = api();
    cu.reset();
    int version = 0;
    EXPECT_OK(cu.cuDriverGetVersion(&version));
    EXPECT_EQ(version, 13020);
    const char* text = nullptr;
    EXPECT_OK(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_OK(cu.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ(text, "illegal address");
    EXPECT_EQ(cu.cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(text, nullptr);
}

TEST(BeforeInit, InitTakesNoFlags) {
    api().reset();
    EXPECT_EQ(api().cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Device, ThereIsOne) {
    int count = 0;
    EXPECT_OK(cu.cuDeviceGetCount(&count));
    EXPECT_EQ(count, 1);
    CUdevice device = -1;
    EXPECT_OK(cu.cuDeviceGet(&device, 0));
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cu.cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cu.cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Device, SaysThatItIsVirtual) {
    char name[64];
    EXPECT_OK(cu.cuDeviceGetName(name, sizeof name, 0));
    EXPECT_STREQ(name, "gradguard virtual GPU");
    EXPECT_OK(cu.cuDeviceGetName(name, 5, 0));
    EXPECT_STREQ(name, "grad");
    EXPECT_EQ(cu.cuDeviceGetName(name, 5, 1), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Device, TellsWhatIsConfigured) {
    int version = 0;
    EXPECT_OK(cu.cuDriverGetVersion(&version));
    EXPECT_EQ(version, 12040);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), 1000);
    EXPECT_EQ(attribute(6), 20);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 3072);
    EXPECT_EQ(attribute(97), 3072);
    std::size_t bytes = 0;
    EXPECT_OK(cu.cuDeviceTotalMem_v2(&bytes, 0));
    EXPECT_EQ(bytes, 1048576U);
}

TEST_F(Device, KnowsEveryAttributeOfTheHeader) {
    for (int which = 1; which <= 147; ++which) {
        if (which == 139) continue;  // the header has none of that number
        int value;
        EXPECT_OK(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(which), 0)) << which;
    }
    int value;
    EXPECT_EQ(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(148), 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(attribute(10), 32);  // WARP_SIZE
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), 1);
}

TEST_F(Device, IsFoundByItsBusIdAndHasNoPeer) {
    char id[32];
    EXPECT_OK(cu.cuDeviceGetPCIBusId(id, sizeof id, 0));
    CUdevice device = -1;
    EXPECT_OK(cu.cuDeviceGetByPCIBusId(&device, id));
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cu.cuDeviceGetByPCIBusId(&device, "0000:3b:00.0"), CUDA_ERROR_INVALID_DEVICE);
    CUuuid uuid{};
    EXPECT_OK(cu.cuDeviceGetUuid_v2(&uuid, 0));
    EXPECT_EQ(std::memcmp(uuid.bytes, "gradguard", 9), 0);
    int can = 1;
    EXPECT_OK(cu.cuDeviceCanAccessPeer(&can, 0, 0));
    EXPECT_EQ(can, 0);
}

}  // namespace
}  // namespace gradguard::cuda
