// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "kernels/cuda/dynamic_library.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {

/// The built fake of a release: "11_8", "12_4", "13_1".
inline std::string fake_nvrtc(const std::string& release) {
    return GRADGUARD_FAKE_NVRTC "/libfake_nvrtc_" + release + ".so";
}

/// A copy of it in a folder of its own, under `name`, which may begin with folders. Gives its path.
inline std::string put_fake_nvrtc(const TemporaryFolder& folder, const std::string& release, const std::string& name) {
    const std::filesystem::path path = folder.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::copy_file(fake_nvrtc(release), path);
    return std::filesystem::canonical(path).string();
}

/// How often the fake at this path was asked to compile.
inline int compilations(const std::string& path) {
    return cuda::DynamicLibrary::open(path).function<int()>("fake_nvrtc_compilations")();
}

}  // namespace gradguard::testing
