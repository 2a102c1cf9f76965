/* SPDX-License-Identifier: Apache-2.0 */
/* A program in plain C that knows nothing of the virtual driver but the functions of the driver API. Linked with -lcuda. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
CUresult cuInit(unsigned int);
CUresult cuDeviceGetName(char*, int, int);
CUresult cuDevicePrimaryCtxRetain(void**, int);
CUresult cuCtxSetCurrent(void*);
CUresult cuModuleLoadData(void**, const void*);
CUresult cuModuleGetFunction(void**, void*, const char*);
CUresult cuMemAlloc_v2(CUdeviceptr*, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
CUresult cuCtxSynchronize(void);
CUresult cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);

static const char kernel[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry twice(.param .u64 data)\n{\n"
    "    .reg .b64 %rd<4>;\n    .reg .b32 %r<4>;\n"
    "    ld.param.u64 %rd1, [data];\n    mov.u32 %r1, %tid.x;\n    mul.wide.u32 %rd2, %r1, 4;\n"
    "    add.s64 %rd3, %rd1, %rd2;\n    ld.global.u32 %r2, [%rd3];\n    add.u32 %r3, %r2, %r2;\n"
    "    st.global.u32 [%rd3], %r3;\n    ret;\n}\n";

static CUdeviceptr data;

static void check(CUresult result, const char* call) {
    if (result == 0) return;
    fprintf(stderr, "%s: %d\n", call, result);
    exit(1);
}

/* As programs do: the last of the memory goes when the process ends. */
static void release(void) { check(cuMemFree_v2(data), "cuMemFree"); }

int main(void) {
    unsigned values[4] = {1, 2, 3, 4};
    char name[64];
    void *context, *module, *function;
    void* arguments[1] = {&data};
    atexit(release);
    check(cuInit(0), "cuInit");
    check(cuDeviceGetName(name, sizeof name, 0), "cuDeviceGetName");
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuModuleLoadData(&module, kernel), "cuModuleLoadData");
    check(cuModuleGetFunction(&function, module, "twice"), "cuModuleGetFunction");
    check(cuMemAlloc_v2(&data, sizeof values), "cuMemAlloc");
    check(cuMemcpyHtoD_v2(data, values, sizeof values), "cuMemcpyHtoD");
    check(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, NULL, arguments, NULL), "cuLaunchKernel");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemcpyDtoH_v2(values, data, sizeof values), "cuMemcpyDtoH");
    printf("%s: %u %u %u %u\n", name, values[0], values[1], values[2], values[3]);
    return 0;
}
