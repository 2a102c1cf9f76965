// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/vdriver/api.h"

namespace gradguard::cuda {

/// Kernels that the tests launch. `fill` writes value to out[thread of the grid] of count; `add_one` adds one to each;
/// `wild` writes to a null pointer; `odd` to an odd address; `spin` never ends; `racy`: all threads write their number
/// to one word of shared memory and read it behind no barrier; `empty` does nothing.
extern const char* const kKernels;

/// A driver after cuInit(), as a program finds it: nothing of earlier tests is left.
class Driver : public ::testing::Test {
  protected:
    explicit Driver(const std::string& configuration = "{}");
    ~Driver() override;

    const Api& cu = api();
};

/// With the primary context current.
class InContext : public Driver {
  protected:
    explicit InContext(const std::string& configuration = "{}");

    /// Everything anew with another configuration.
    void restart(const std::string& configuration);
    CUmodule load(const char* ptx);
    CUfunction kernel(const char* name);
    CUdeviceptr allocate(std::size_t bytes);
    std::vector<std::uint32_t> words(CUdeviceptr address, std::size_t count);
    CUresult launch(CUfunction function, unsigned blocks, unsigned threads, CUstream stream,
                    std::vector<void*> arguments, unsigned shared_bytes = 0);

    CUcontext context = nullptr;

  private:
    CUmodule module_ = nullptr;
};

/// For messages.
void PrintTo(CUresult result, std::ostream* out);

#define EXPECT_OK(call) EXPECT_EQ(call, ::gradguard::cuda::CUDA_SUCCESS)
#define ASSERT_OK(call) ASSERT_EQ(call, ::gradguard::cuda::CUDA_SUCCESS)

}  // namespace gradguard::cuda
