// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gradguard::bench {

/// SHA-256 over the sources that the measured code was built from (kernels, bench, reference/contract), as they were
/// when it was built: of the lines "HASH  PATH", as sha256sum prints them, in the order of the paths.
struct SourceHash {
    std::string sha256;
    int files = 0;
};
SourceHash source_hash();

/// "GNU 12.2.0", and the options of the build.
std::string host_compiler();
std::string host_flags();

/// kernels/ptx/provenance.json and bench/device/provenance.json.
nlohmann::ordered_json kernel_provenance();
nlohmann::ordered_json bench_kernel_provenance();

}  // namespace gradguard::bench
