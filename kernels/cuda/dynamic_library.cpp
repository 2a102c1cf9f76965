// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dynamic_library.h"

#include <dlfcn.h>

#include <utility>

namespace gradguard::cuda {
namespace {

/// Takes the loader's message, which the next call of the loader would replace.
std::string loader_message() {
    const char* message = dlerror();
    return message == nullptr ? "the loader gave no reason" : message;
}

}  // namespace

DynamicLibrary DynamicLibrary::open(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw LibraryError("cannot load " + name + ": " + loader_message());
    return {name, handle};
}

DynamicLibrary DynamicLibrary::open_first(const std::vector<std::string>& names) {
    std::string reasons;
    for (const std::string& name : names) {
        void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr) return {name, handle};
        reasons += (reasons.empty() ? "cannot load " : "; nor ") + name + ": " + loader_message();
    }
    throw LibraryError(reasons.empty() ? "no library to load" : reasons);
}

std::string DynamicLibrary::path_of(const std::string& symbol) const {
    Dl_info info = {};
    if (dladdr(require(symbol), &info) == 0 || info.dli_fname == nullptr) return name_;
    return info.dli_fname;
}

void* DynamicLibrary::find(const std::string& symbol) const { return dlsym(handle_, symbol.c_str()); }

void* DynamicLibrary::require(const std::string& symbol) const {
    dlerror();
    void* address = dlsym(handle_, symbol.c_str());
    if (address == nullptr) throw LibraryError(name_ + " has no symbol " + symbol + ": " + loader_message());
    return address;
}

}  // namespace gradguard::cuda
