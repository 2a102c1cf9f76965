// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/cuda/device_sources.h"
#include "kernels/cuda/nvrtc_search.h"
#include "kernels/cuda/nvrtc_source.h"

namespace gradguard::testing {

/// Every NVRTC of this machine, of version 12 or 13, each release once; empty: none, and `why` says what was tried.
inline std::vector<std::shared_ptr<const cuda::Nvrtc>> installed_nvrtcs(std::string& why) {
    std::vector<std::shared_ptr<const cuda::Nvrtc>> found;
    try {
        found.push_back(cuda::find_nvrtc(std::string()));  // the loader's path may have one too
    } catch (const cuda::NvrtcUnavailable& error) {
        why = error.what();
    }
    for (const std::string& file : cuda::nvrtc_files(cuda::NvrtcPlaces::usual())) {
        try {
            auto nvrtc = cuda::Nvrtc::load(file);
            const auto same = [&](const auto& one) { return one->release() == nvrtc->release(); };
            if (std::none_of(found.begin(), found.end(), same)) found.push_back(std::move(nvrtc));
        } catch (const cuda::NvrtcUnavailable&) {  // of another version
        }
    }
    return found;
}

/// A way to compile the kernels.
struct Compilation {
    std::string module;
    bool contracted = true;
    std::string architecture;

    std::string name() const { return module + (contracted ? "_fmad_" : "_nofmad_") + architecture; }
    std::string by(const cuda::Nvrtc& nvrtc) const {
        return nvrtc.compile(cuda::device_source(module), cuda::nvrtc_flags(contracted, architecture));
    }
};

/// For GoogleTest.
inline void PrintTo(const Compilation& compilation, std::ostream* stream) { *stream << compilation.name(); }

/// Both modules, with and without contraction, for both architectures.
inline std::vector<Compilation> all_compilations() {
    std::vector<Compilation> all;
    for (const char* module : {"statistics", "update"}) {
        for (const bool contracted : {true, false}) {
            for (const char* architecture : {"compute_80", "compute_90"})
                all.push_back({module, contracted, architecture});
        }
    }
    return all;
}

}  // namespace gradguard::testing
