// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <stdexcept>

#include "harness/devices/kernel_folder.h"
#include "harness/devices/registry.h"
#include "harness/subjects/library_subject.h"
#include "harness/subjects/oracle_subject.h"
#include "harness/subjects/planted.h"
#include "harness/subjects/subject.h"
#include "harness/vgpu/error.h"
#include "kernels/cuda/nvrtc_source.h"
#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

constexpr std::string_view kVirtualGpu = "vgpu/";
constexpr std::string_view kDevices[] = {"cuda/", "vdriver/"};  // Others that the library runs on, before a build.
constexpr std::string_view kFmad = "vgpu/fmad";
constexpr std::string_view kNofmad = "vgpu/nofmad";
constexpr std::string_view kByNvrtc = "+nvrtc";  // Ends the name of a library whose kernels NVRTC compiles.
constexpr std::string_view kOracle = "oracle";
constexpr std::string_view kPlanted = "planted/";
constexpr std::string_view kPtx = "ptx:";

std::string_view without_compiler(std::string_view name) {
    if (name.ends_with(kByNvrtc)) name.remove_suffix(kByNvrtc.size());
    return name;
}

/// "vgpu/fmad" for "cuda/fmad".
std::string on_virtual_gpu(std::string_view name) {
    for (const std::string_view device : kDevices) {
        if (name.starts_with(device)) return std::string(kVirtualGpu) + std::string(name.substr(device.size()));
    }
    return std::string(name);
}

std::unique_ptr<Subject> make_library(std::string_view name, bool contracted, SubjectOptions options) {
    LibraryRecipe recipe;
    if (!name.starts_with(kVirtualGpu)) options.device = name.substr(0, name.find('/'));
    recipe.name = subject_on(name, options.device);
    recipe.kernels = KernelSource::embedded(contracted);
    if (name.ends_with(kByNvrtc)) {
        cuda::NvrtcOptions nvrtc;
        nvrtc.contracted = contracted;
        nvrtc.library = options.nvrtc;
        nvrtc.note = options.note;
        if (options.device != "vgpu") {
            nvrtc.newest = newest_cuda(*open_device({.name = options.device, .observers = options.observers}));
        }
        recipe.kernels = cuda::nvrtc_source(nvrtc);
    }
    recipe.abilities.contraction = contracted ? Contraction::kAllowed : Contraction::kForbidden;
    return make_library_subject(std::move(recipe), options);
}

/// Somebody else's kernels, judged like the library's contracted ones.
std::unique_ptr<Subject> make_from_folder(std::string_view name, const SubjectOptions& options) {
    LibraryRecipe recipe;
    recipe.name = name;
    try {
        recipe.kernels = kernels_from_folder(std::string(name.substr(kPtx.size())));
        return make_library_subject(std::move(recipe), options);
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("subject " + std::string(name) + ": " + error.what());
    } catch (const vgpu::PtxError& error) {
        throw std::invalid_argument("subject " + std::string(name) + ": " + error.what());
    } catch (const Error& error) {
        throw std::invalid_argument("subject " + std::string(name) + ": " + error.message());
    }
}

}  // namespace

std::vector<SubjectInfo> list_subjects() {
    std::vector<SubjectInfo> all = {
        {std::string(kFmad), "the library with its contracted kernels on the virtual GPU", false},
        {std::string(kNofmad), "the library with its uncontracted kernels on the virtual GPU", false},
        {std::string(kOracle), "the reference itself: must pass everything", false}};
    for (const PlantedFault& fault : planted_faults()) {
        all.push_back(
            {std::string(kPlanted) + std::string(fault.name), std::string(fault.description), fault.level != "clean"});
    }
    for (const std::string_view build : {kFmad, kNofmad}) {
        all.push_back({std::string(build) + std::string(kByNvrtc),
                       "the same as " + std::string(build) + ", its kernels compiled by NVRTC at first use", false});
    }
    for (const std::string_view device : kDevices) {
        for (const std::string_view build : {kFmad, kNofmad}) {
            all.push_back({std::string(device) + std::string(build.substr(kVirtualGpu.size())),
                           "the same as " + std::string(build) + " on the device " +
                               std::string(device.substr(0, device.size() - 1)),
                           false});
        }
    }
    return all;
}

std::unique_ptr<Subject> make_subject(std::string_view name, const SubjectOptions& options) {
    const std::string build = on_virtual_gpu(without_compiler(name));
    if (build == kFmad || build == kNofmad) return make_library(name, build == kFmad, options);
    if (name == kOracle) return make_oracle_subject();
    for (const PlantedFault& fault : planted_faults()) {
        if (name == std::string(kPlanted) + std::string(fault.name)) return make_planted_subject(fault, options);
    }
    if (name.starts_with(kPtx)) return make_from_folder(name, options);
    std::string known;
    for (const SubjectInfo& info : list_subjects()) known += info.name + ", ";
    throw std::invalid_argument("unknown subject \"" + std::string(name) + "\"; known are " + known + "ptx:FOLDER");
}

std::string subject_compiled_by(std::string_view subject, std::string_view compiler) {
    const std::string build(without_compiler(subject));
    if (compiler == "ptx") return build;
    if (on_virtual_gpu(build) != kFmad && on_virtual_gpu(build) != kNofmad) {
        throw std::invalid_argument("subject " + std::string(subject) + " has no kernels for NVRTC to compile");
    }
    return build + std::string(kByNvrtc);
}

std::string subject_on(std::string_view subject, std::string_view device) {
    const std::string name = on_virtual_gpu(subject);
    const std::string_view build = without_compiler(name);
    const bool known = std::ranges::count(kDevices, std::string(device) + "/") != 0 || device == "vgpu";
    if (!known || (build != kFmad && build != kNofmad)) return std::string(subject);
    return std::string(device) + name.substr(kVirtualGpu.size() - 1);
}

}  // namespace gradguard::harness
