// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "harness/vdriver/export.h"
#include "harness/vdriver/proc_address.h"

// Every function of the driver API exists: programs link hundreds at load time and call few. One that nothing else in
// this library defines is a stub, for the definitions here are weak.

namespace {

gradguard::cuda::CUresult unsupported(const char* function) {
    return gradguard::vdriver::anytime(function, [&](gradguard::vdriver::Driver& driver) {
        driver.record.not_supported(function);
        return gradguard::cuda::CUDA_ERROR_NOT_SUPPORTED;
    });
}

}  // namespace

#define GRADGUARD_DRIVER_FUNCTION(symbol, base, since, per_thread)                               \
    extern "C" __attribute__((visibility("default"), weak)) gradguard::cuda::CUresult symbol() { \
        return unsupported(#symbol);                                                             \
    }
#include "harness/vdriver/driver_functions.inc"
#undef GRADGUARD_DRIVER_FUNCTION

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

namespace {

struct Entry {
    const char* base;
    int since;
    bool per_thread;
    CUresult (*function)();
};

const Entry kFunctions[] = {
#define GRADGUARD_DRIVER_FUNCTION(symbol, base, since, per_thread) {#base, since, per_thread, symbol},
#include "harness/vdriver/driver_functions.inc"
#undef GRADGUARD_DRIVER_FUNCTION
};

}  // namespace

void* find_function(const char* name, int version, int& status) {
    const Entry* best = nullptr;
    status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (const Entry& entry : kFunctions) {
        if (entry.per_thread || std::strcmp(entry.base, name) != 0) continue;
        if (entry.since > version) {
            if (best == nullptr) status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
            continue;
        }
        if (best == nullptr || entry.since >= best->since) best = &entry;
    }
    if (best == nullptr) return nullptr;
    status = CU_GET_PROC_ADDRESS_SUCCESS;
    return reinterpret_cast<void*>(best->function);
}

}  // namespace gradguard::vdriver
