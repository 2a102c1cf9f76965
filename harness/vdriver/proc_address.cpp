// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/proc_address.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

int address_of(Driver& driver, const char* name, void** function, int version, std::uint64_t flags) {
    require(name != nullptr && function != nullptr && (flags & ~std::uint64_t{3}) == 0);
    *function = nullptr;
    driver.configure();
    require(version <= driver.configuration.driver_version);
    int status;
    *function = find_function(name, version, status);
    if (status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) driver.record.not_supported(name);
    return status;
}

/// Name of a code and words for it, made of the name: "illegal address".
struct ErrorText {
    const char* name;
    std::string words;
};

std::string words_of(const char* name) {
    std::string words(name);
    words.erase(0, words.starts_with("CUDA_ERROR_") ? 11 : 5);
    std::replace(words.begin(), words.end(), '_', ' ');
    for (char& c : words) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return words == "success" ? "no error" : words;
}

/// Null for a number that is no code.
const ErrorText* find_error(CUresult error) {
    static const std::map<int, ErrorText> texts{
#define GRADGUARD_CUDA_RESULT(name, number) {number, {#name, words_of(#name)}},
        GRADGUARD_CUDA_RESULTS(GRADGUARD_CUDA_RESULT)
#undef GRADGUARD_CUDA_RESULT
    };
    const auto it = texts.find(error);
    return it == texts.end() ? nullptr : &it->second;
}

CUresult tell_error(const char* function, CUresult error, const char** text, bool name) {
    return anytime(function, [&](Driver&) {
        require(text != nullptr);
        const ErrorText* const known = find_error(error);
        *text = known == nullptr ? nullptr : name ? known->name : known->words.c_str();
        require(known != nullptr);
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
    return anytime(__func__, [&](Driver& driver) {
        const int status = address_of(driver, name, function, version, flags);
        return status == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    });
}

GRADGUARD_DRIVER_API cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                                         int* status) {
    return anytime(__func__, [&](Driver& driver) {
        const int found = address_of(driver, name, function, version, flags);
        if (status != nullptr) *status = found;
        return found == CU_GET_PROC_ADDRESS_SUCCESS || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    });
}

GRADGUARD_DRIVER_API cuGetErrorName(CUresult error, const char** name) {
    return tell_error(__func__, error, name, true);
}

GRADGUARD_DRIVER_API cuGetErrorString(CUresult error, const char** text) {
    return tell_error(__func__, error, text, false);
}

GRADGUARD_DRIVER_API cuGetExportTable(const void** table, const CUuuid*) {
    return anytime(__func__, [&](Driver&) {
        if (table != nullptr) *table = nullptr;
        return CUDA_ERROR_NOT_SUPPORTED;  // what is in such tables is known to nobody outside; callers ask and go on
    });
}

GRADGUARD_DRIVER_API cuProfilerStart() {
    return in_context(__func__, [](Context&) {});
}

GRADGUARD_DRIVER_API cuProfilerStop() {
    return in_context(__func__, [](Context&) {});
}
