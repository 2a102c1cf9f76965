// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/planted.h"

#include <stdexcept>
#include <string>

namespace gradguard::harness {

std::unique_ptr<Subject> make_planted_subject(const PlantedFault& fault, const SubjectOptions& options) {
    LibraryRecipe recipe;
    recipe.name = "planted/" + std::string(fault.name);
    recipe.kernels = {std::string(fault.name), [fault](std::string_view module) {
                          const std::string_view own = module == "update" ? fault.update_ptx : fault.statistics_ptx;
                          return own.empty() ? KernelSource::embedded(true).ptx(module) : std::string(own);
                      }};
    if (fault.statistics_ptx.empty() && fault.update_ptx.empty()) {
        const HostFault* planted = nullptr;
        for (const HostFault& host : host_faults()) {
            if (host.name == fault.name) planted = &host;
        }
        if (planted == nullptr) throw std::logic_error("nothing is planted for " + recipe.name);
        planted->plant(recipe);
    }
    return make_library_subject(std::move(recipe), options);
}

}  // namespace gradguard::harness
