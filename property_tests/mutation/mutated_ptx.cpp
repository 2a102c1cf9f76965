// SPDX-License-Identifier: Apache-2.0
// The test programs of the battery are the ordinary ones, linked with this in place of the embedded kernels: what
// they test are the kernels in the folder that the environment variable GRADGUARD_MUTANT names, as MODULE.BUILD.ptx.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "kernels/ptx/embedded.h"

namespace gradguard::kernels {

std::string_view embedded_ptx(std::string_view module, std::string_view build) {
    static std::mutex mutex;
    static std::map<std::string, std::string> texts;
    const char* folder = std::getenv("GRADGUARD_MUTANT");
    const std::string path =
        std::string(folder != nullptr ? folder : "") + "/" + std::string(module) + "." + std::string(build) + ".ptx";
    const std::lock_guard lock(mutex);
    const auto known = texts.find(path);
    if (known != texts.end()) return known->second;
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        std::fprintf(stderr, "GRADGUARD_MUTANT: want a folder with the kernels, got no %s\n", path.c_str());
        std::exit(2);
    }
    return texts.emplace(path, std::string(std::istreambuf_iterator<char>(stream), {})).first->second;
}

}  // namespace gradguard::kernels
