// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/kernel_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "harness/vgpu/module.h"

namespace gradguard::harness {

KernelSource kernels_from_folder(const std::string& folder, bool contracted) {
    std::map<std::string, std::string, std::less<>> texts;
    for (const char* module : {"statistics", "update"}) {
        const std::filesystem::path path = std::filesystem::path(folder) / (std::string(module) + ".ptx");
        std::ifstream stream(path, std::ios::binary);
        if (!stream) continue;
        std::string text(std::istreambuf_iterator<char>(stream), {});
        vgpu::Module::load(text, path.string());  // now, so that what is wrong is said with the file's own name
        texts.emplace(module, std::move(text));
    }
    if (texts.empty()) {
        throw std::invalid_argument("want statistics.ptx or update.ptx in the folder " + folder + ", got neither");
    }
    return {folder, [texts = std::move(texts), contracted](std::string_view module) {
                const auto at = texts.find(module);
                return at == texts.end() ? KernelSource::embedded(contracted).ptx(module) : at->second;
            }};
}

}  // namespace gradguard::harness
