// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/compile_cache.h"
#include "kernels/cuda/nvrtc.h"

namespace gradguard::cuda {

/// Where NVRTC is looked for, as data.
struct NvrtcPlaces {
    struct Place {
        std::string origin;  ///< In words: "CUDA_HOME", "the environment in VIRTUAL_ENV", ...
        std::string folder;  ///< Empty: there is none (a variable that is not set).
    };
    std::vector<Place> toolkits;  ///< The library lies in lib64, lib or targets/*/lib of such a folder, or in itself.
    std::vector<std::string> names;   ///< For the loader.
    std::vector<Place> environments;  ///< Of Python: in lib/python3*/site-packages/nvidia/*/lib.

    /// Toolkits: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/local/cuda-* (newest first), /opt/cuda; the loader's path;
    /// environments: VIRTUAL_ENV, CONDA_PREFIX, .venv in the working folder and the one beside the program or beside
    /// its build folder, the one that the program is installed in, ~/.local, /usr/local, /usr.
    static NvrtcPlaces usual();
    /// A folder that somebody names: of a toolkit, of a Python environment, or of the library itself.
    static NvrtcPlaces in(const std::string& folder);
};

/// Libraries that lie there, the preferred one first: by place, of one place version 13 before 12.
std::vector<std::string> nvrtc_files(const NvrtcPlaces& places);

/// The first NVRTC of these places that loads, is of version 12 or 13, and is no newer than `newest`. What loaded once
/// is kept in `memory`, if there is one, and is not loaded again. Throws NvrtcUnavailable with all that was tried.
std::shared_ptr<const Nvrtc> find_nvrtc(const NvrtcPlaces& places, std::optional<CudaRelease> newest = std::nullopt,
                                        CompileCache* memory = nullptr);

/// The same; `library` is a file, a file name for the loader or a folder, and nothing else is looked at; empty: the
/// usual places.
std::shared_ptr<const Nvrtc> find_nvrtc(const std::string& library, std::optional<CudaRelease> newest = std::nullopt,
                                        CompileCache* memory = nullptr);

}  // namespace gradguard::cuda
