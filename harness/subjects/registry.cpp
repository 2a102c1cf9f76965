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
#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

constexpr std::string_view kFmad = "vgpu/fmad";
constexpr std::string_view kNofmad = "vgpu/nofmad";
constexpr std::string_view kOracle = "oracle";
constexpr std::string_view kPlanted = "planted/";
constexpr std::string_view kPtx = "ptx:";

std::unique_ptr<Subject> make_library(std::string_view name, bool contracted, const SubjectOptions& options) {
    LibraryRecipe recipe;
    recipe.name = name;
    recipe.kernels = KernelSource::embedded(contracted);
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
    return all;
}

std::unique_ptr<Subject> make_subject(std::string_view name, const SubjectOptions& options) {
    if (name == kFmad || name == kNofmad) return make_library(name, name == kFmad, options);
    if (name == kOracle) return make_oracle_subject();
    for (const PlantedFault& fault : planted_faults()) {
        if (name == std::string(kPlanted) + std::string(fault.name)) return make_planted_subject(fault, options);
    }
    if (name.starts_with(kPtx)) return make_from_folder(name, options);
    std::string known;
    for (const SubjectInfo& info : list_subjects()) known += info.name + ", ";
    throw std::invalid_argument("unknown subject \"" + std::string(name) + "\"; known are " + known + "ptx:FOLDER");
}

}  // namespace gradguard::harness
