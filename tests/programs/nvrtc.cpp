// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gradguard::programs {
namespace {

/// A function of NVRTC; its types are opaque pointers and int.
template <class Function>
Function find(void* library, const std::string& name) {
    void* const symbol = dlsym(library, name.c_str());
    if (!symbol) throw std::runtime_error("libnvrtc has no " + name);
    return reinterpret_cast<Function>(symbol);
}

std::string text_of(void* library, void* program, const std::string& what) {
    std::size_t size = 0;
    find<int (*)(void*, std::size_t*)>(library, "nvrtcGet" + what + "Size")(program, &size);
    std::string text(size, '\0');
    find<int (*)(void*, char*)>(library, "nvrtcGet" + what)(program, text.data());
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

}  // namespace

Nvrtc::Nvrtc() {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
        if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
}

std::string Nvrtc::compile(const std::string& source, const std::vector<std::string>& flags) const {
    const std::string root = GRADGUARD_SOURCE_DIR, include = "-I" + root;
    std::ifstream file(root + "/" + source);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) throw std::runtime_error("cannot read " + source);
    void* program = nullptr;
    using Create = int (*)(void**, const char*, const char*, int, const char* const*, const char* const*);
    find<Create>(library_, "nvrtcCreateProgram")(&program, text.str().c_str(), source.c_str(), 0, nullptr, nullptr);
    std::vector<const char*> options = {"-arch=compute_80", "-std=c++20", include.c_str()};
    for (const std::string& flag : flags) options.push_back(flag.c_str());
    const int status = find<int (*)(void*, int, const char* const*)>(library_, "nvrtcCompileProgram")(
        program, static_cast<int>(options.size()), options.data());
    const std::string made = text_of(library_, program, status == 0 ? "PTX" : "ProgramLog");
    find<int (*)(void**)>(library_, "nvrtcDestroyProgram")(&program);
    if (status != 0) throw std::runtime_error(made);
    return made;
}

}  // namespace gradguard::programs
