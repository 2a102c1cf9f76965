// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "harness/subjects/library_subject.h"

namespace gradguard::harness {

/// A row of property_tests/planted/faults.json with what its patch was compiled to.
struct PlantedFault {
    std::string_view name;         ///< Without "planted/".
    std::string_view level;        ///< "device": patched kernels. "host": operations of planted_host. "clean": none.
    std::string_view listed;       ///< The words for it in the list of faults that must be caught; may be empty.
    std::string_view description;  ///< What it does.
    std::string_view needs;        ///< What a case must have to show it; may be empty.
    std::uint64_t least_elements = 0;  ///< In the smallest group that can show it.
    std::string_view statistics_ptx;   ///< Empty: the library's own module.
    std::string_view update_ptx;
};

/// All, in the table's order; the clean twins first.
std::span<const PlantedFault> planted_faults();

/// The library with the fault in it, as "planted/NAME". Throws as make_library_subject() does.
std::unique_ptr<Subject> make_planted_subject(const PlantedFault& fault, const SubjectOptions& options);

/// The operations and device hooks of a fault of the host, or of the host's clean twin.
struct HostFault {
    std::string_view name;
    void (*plant)(LibraryRecipe& recipe);
};
std::span<const HostFault> host_faults();

}  // namespace gradguard::harness
