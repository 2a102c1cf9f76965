// SPDX-License-Identifier: Apache-2.0
#include "tests/vdriver/fixture.h"

#include <ostream>

namespace gradguard::cuda {

const char* const kKernels = R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "kernels_of_the_test.cu"

.global .align 4 .u32 counter = 7;
.const .align 4 .b8 table[16] = {1, 2, 3, 4};

.visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    ld.param.u32 %r2, [count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra done;
    mul.wide.u32 %rd2, %r6, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
done:
    ret;
}

.visible .entry add_one(.param .u64 data, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r2, [count];
    mov.u32 %r5, %tid.x;
    setp.ge.u32 %p1, %r5, %r2;
    @%p1 bra done;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r3, [%rd3];
    add.u32 %r4, %r3, 1;
    st.global.u32 [%rd3], %r4;
done:
    ret;
}

.visible .entry wild()
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd1, 0;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry odd(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    add.s64 %rd2, %rd1, 1;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry spin()
{
again:
    bra again;
}

.visible .entry stop()
{
    trap;
}

.visible .entry racy(.param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 4 .u32 word;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    .loc 1 42 5
    st.shared.u32 [word], %r1;
    .loc 1 43 5
    ld.shared.u32 %r2, [word];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}

.visible .entry flushing(.param .u64 data)
{
    .reg .f32 %f<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    ld.global.f32 %f1, [%rd1];
    mul.rn.ftz.f32 %f2, %f1, 0f40000000;
    st.global.f32 [%rd1], %f2;
    ret;
}

.visible .entry shared_user(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .shared .align 4 .b8 room[1024];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %dynamic_smem_size;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry small_block() .maxntid 64, 1, 1
{
    ret;
}

.visible .entry empty()
{
    ret;
}
)";

Driver::Driver(const std::string& configuration) {
    cu.reset();
    EXPECT_EQ(cu.configure(configuration.c_str()), 0);
    EXPECT_OK(cu.cuInit(0));
}

Driver::~Driver() { cu.reset(); }

InContext::InContext(const std::string& configuration) : Driver(configuration) {
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cu.cuCtxSetCurrent(context));
}

void InContext::restart(const std::string& configuration) {
    cu.reset();
    module_ = nullptr;
    EXPECT_EQ(cu.configure(configuration.c_str()), 0);
    EXPECT_OK(cu.cuInit(0));
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cu.cuCtxSetCurrent(context));
}

CUmodule InContext::load(const char* ptx) {
    CUmodule module = nullptr;
    EXPECT_OK(cu.cuModuleLoadData(&module, ptx));
    return module;
}

CUfunction InContext::kernel(const char* name) {
    if (module_ == nullptr) module_ = load(kKernels);
    CUfunction function = nullptr;
    EXPECT_OK(cu.cuModuleGetFunction(&function, module_, name));
    return function;
}

CUdeviceptr InContext::allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&address, bytes));
    return address;
}

std::vector<std::uint32_t> InContext::words(CUdeviceptr address, std::size_t count) {
    std::vector<std::uint32_t> result(count);
    EXPECT_OK(cu.cuMemcpyDtoH_v2(result.data(), address, 4 * count));
    return result;
}

CUresult InContext::launch(CUfunction function, unsigned blocks, unsigned threads, CUstream stream,
                           std::vector<void*> arguments, unsigned shared_bytes) {
    return cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, arguments.data(), nullptr);
}

void PrintTo(CUresult result, std::ostream* out) {
    const char* name = nullptr;
    api().cuGetErrorName(result, &name);
    *out << (name != nullptr ? name : "?") << " (" << static_cast<int>(result) << ")";
}

}  // namespace gradguard::cuda
