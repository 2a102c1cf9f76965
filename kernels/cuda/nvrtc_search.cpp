// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvrtc_search.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "kernels/cuda/sha256.h"

namespace gradguard::cuda {
namespace {

namespace fs = std::filesystem;
using Place = NvrtcPlaces::Place;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

bool is_folder(const fs::path& path) {
    std::error_code error;
    return fs::is_directory(path, error);
}

/// Subfolders whose name starts so, in the order of their names.
std::vector<fs::path> subfolders(const fs::path& folder, const std::string& start = "") {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename().string().starts_with(start) && is_folder(at->path())) found.push_back(at->path());
    }
    std::ranges::sort(found);
    return found;
}

/// Adds the libraries of a folder; links to one that is there already are none.
void add_files(const fs::path& folder, std::vector<std::string>& files) {
    for (const char* name : kNames) {
        std::error_code error;
        const fs::path file = fs::canonical(folder / name, error);
        if (error || !fs::is_regular_file(file, error)) continue;
        if (std::ranges::find(files, file.string()) == files.end()) files.push_back(file.string());
    }
}

void add_toolkit(const fs::path& folder, std::vector<std::string>& files) {
    for (const char* part : {"lib64", "lib", "."}) add_files(folder / part, files);
    for (const fs::path& target : subfolders(folder / "targets")) add_files(target / "lib", files);
}

/// Folders that a site-packages folder adds by its .pth files, as Python reads them.
std::vector<fs::path> added_by_pth(const fs::path& packages) {
    std::vector<fs::path> added;
    std::error_code error;
    for (fs::directory_iterator at(packages, error), end; !error && at != end; at.increment(error)) {
        if (at->path().extension() != ".pth") continue;
        std::ifstream file(at->path());
        for (std::string line; std::getline(file, line);) {
            if (!line.empty() && line[0] != '#' && !line.starts_with("import") && is_folder(packages / line)) {
                added.push_back(packages / line);
            }
        }
    }
    return added;
}

void add_environment(const fs::path& folder, std::vector<std::string>& files) {
    for (const char* library : {"lib", "lib64"}) {
        for (const fs::path& python : subfolders(folder / library, "python3")) {
            for (const char* name : {"site-packages", "dist-packages"}) {
                std::vector<fs::path> packages = added_by_pth(python / name);
                packages.insert(packages.begin(), python / name);
                for (const fs::path& one : packages) {
                    for (const fs::path& part : subfolders(one / "nvidia")) add_files(part / "lib", files);
                }
            }
        }
    }
}

std::vector<std::string> files_of(void (*add)(const fs::path&, std::vector<std::string>&), const Place& place) {
    std::vector<std::string> files;
    if (!place.folder.empty()) add(place.folder, files);
    return files;
}

/// /usr/local/cuda-13.0 before cuda-12.9 before cuda-9.2.
std::vector<fs::path> versioned_toolkits(const fs::path& folder) {
    std::vector<fs::path> found = subfolders(folder, "cuda-");
    const auto version = [](const fs::path& path) { return std::atof(path.filename().string().c_str() + 5); };
    std::ranges::stable_sort(found, std::ranges::greater(), version);
    return found;
}

/// The release of a file as it was loaded before; nothing when it was not, or has changed since.
std::optional<CudaRelease> remembered(const CompileCache& memory, const std::string& key) {
    const std::optional<std::string> text = memory.find(key);
    CudaRelease release;
    if (!text || std::sscanf(text->c_str(), "%d.%d", &release.major, &release.minor) != 2) return std::nullopt;
    return release;
}

std::shared_ptr<const Nvrtc> load(const std::string& library, CompileCache* memory) {
    std::error_code error;
    const fs::path file = fs::canonical(library, error);
    if (memory == nullptr || error) return Nvrtc::load(library);
    const std::string key = Sha256().add_field("release of NVRTC").add_field(Nvrtc::identity_of(file)).hex();
    if (const auto release = remembered(*memory, key)) return Nvrtc::known(file, *release);
    auto nvrtc = Nvrtc::load(file);
    memory->store(key, nvrtc->release().text());
    return nvrtc;
}

/// One search: its limits, and what it has tried, for its message.
class Search {
  public:
    Search(std::optional<CudaRelease> newest, CompileCache* memory) : newest_(newest), memory_(memory) {}

    /// Null when it cannot be used.
    std::shared_ptr<const Nvrtc> try_library(const std::string& library) {
        try {
            auto nvrtc = load(library, memory_);
            if (!newest_ || nvrtc->release() <= *newest_) return nvrtc;
            add(library + " is NVRTC " + nvrtc->release().text());
        } catch (const NvrtcUnavailable& error) {
            add(error.what());
        }
        return nullptr;
    }

    std::shared_ptr<const Nvrtc> try_place(const Place& place, const std::vector<std::string>& files,
                                           const char* nothing) {
        for (const std::string& file : files) {
            if (auto nvrtc = try_library(file)) return nvrtc;
        }
        if (place.folder.empty()) {
            add(place.origin + " (not there)");
        } else if (files.empty()) {
            add(place.origin + " " + place.folder + " (" + nothing + ")");
        }
        return nullptr;
    }

    [[noreturn]] void fail() const {
        const std::string limit =
            newest_ ? " that is no newer than CUDA " + newest_->text() + ", which the driver takes" : std::string();
        throw NvrtcUnavailable("no NVRTC of version 12 or 13" + limit + ": " + tried_);
    }

  private:
    void add(const std::string& line) { tried_ += (tried_.empty() ? "" : "; ") + line; }

    std::optional<CudaRelease> newest_;
    CompileCache* memory_;
    std::string tried_;
};

}  // namespace

NvrtcPlaces NvrtcPlaces::usual() {
    NvrtcPlaces places;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) places.toolkits.push_back({name, variable(name)});
    places.toolkits.push_back({"toolkit", "/usr/local/cuda"});
    for (const fs::path& folder : versioned_toolkits("/usr/local")) places.toolkits.push_back({"toolkit", folder});
    places.toolkits.push_back({"toolkit", "/opt/cuda"});
    places.toolkits.push_back({"CONDA_PREFIX", variable("CONDA_PREFIX")});
    places.names = {kNames[0], kNames[1]};
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) places.environments.push_back({name, variable(name)});
    std::error_code error;
    places.environments.push_back({"Python environment", fs::current_path(error) / ".venv"});
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    if (!error) {
        const fs::path above = program.parent_path();
        for (const fs::path& folder : {program / ".venv", above / ".venv", above}) {
            places.environments.push_back({"Python environment", folder});
        }
    }
    if (const std::string home = variable("HOME"); !home.empty()) {
        places.environments.push_back({"Python's own packages", fs::path(home) / ".local"});
    }
    for (const char* folder : {"/usr/local", "/usr"}) places.environments.push_back({"Python's own packages", folder});
    return places;
}

NvrtcPlaces NvrtcPlaces::in(const std::string& folder) {
    return {{{"the folder", folder}}, {}, {{"the Python environment", folder}}};
}

std::vector<std::string> nvrtc_files(const NvrtcPlaces& places) {
    std::vector<std::string> files;
    for (const Place& place : places.toolkits) {
        if (!place.folder.empty()) add_toolkit(place.folder, files);
    }
    for (const Place& place : places.environments) {
        if (!place.folder.empty()) add_environment(place.folder, files);
    }
    return files;
}

std::shared_ptr<const Nvrtc> find_nvrtc(const NvrtcPlaces& places, std::optional<CudaRelease> newest,
                                        CompileCache* memory) {
    Search search(newest, memory);
    for (const Place& place : places.toolkits) {
        if (auto nvrtc = search.try_place(place, files_of(add_toolkit, place), "no libnvrtc")) return nvrtc;
    }
    for (const std::string& name : places.names) {
        if (auto nvrtc = search.try_library(name)) return nvrtc;
    }
    for (const Place& place : places.environments) {
        const auto files = files_of(add_environment, place);
        if (auto nvrtc = search.try_place(place, files, "no package nvidia-cuda-nvrtc")) return nvrtc;
    }
    search.fail();
}

std::shared_ptr<const Nvrtc> find_nvrtc(const std::string& library, std::optional<CudaRelease> newest,
                                        CompileCache* memory) {
    if (library.empty()) return find_nvrtc(NvrtcPlaces::usual(), newest, memory);
    if (is_folder(library)) return find_nvrtc(NvrtcPlaces::in(library), newest, memory);
    Search search(newest, memory);
    if (auto nvrtc = search.try_library(library)) return nvrtc;
    search.fail();
}

}  // namespace gradguard::cuda
