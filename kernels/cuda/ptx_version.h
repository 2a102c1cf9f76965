// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace gradguard::cuda {

/// Version of the PTX ISA, as in `.version 9.0`.
struct PtxVersion {
    int major = 0;
    int minor = 0;
    auto operator<=>(const PtxVersion&) const = default;
    std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// The highest PTX that a driver takes, by the CUDA version that cuDriverGetVersion gives (12080 for 12.8): table
/// "PTX Release History" of the PTX ISA manual, from CUDA 11.0 on. Nothing for a driver that is newer or older than the
/// table: only it can say.
std::optional<PtxVersion> highest_ptx_version(int driver_version);

/// What a PTX text asks for in its first directives.
struct PtxHeader {
    PtxVersion version;
    std::string target;  ///< "sm_80", "sm_90a", ...
};

/// Nothing when the text has no `.version` or no `.target`.
std::optional<PtxHeader> read_ptx_header(std::string_view ptx);

/// Compute capability of a device: 9.0 of an H200.
struct ComputeCapability {
    int major = 0;
    int minor = 0;
    auto operator<=>(const ComputeCapability&) const = default;
    std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// Why a driver of this version cannot load this PTX for this device, in words; nothing when it can, or when only
/// trying tells. PTX for sm_80 runs on 8.0 and everything later, sm_90a on 9.0 alone, sm_100f on 10.x from 10.0 on.
std::optional<std::string> why_not_loadable(std::string_view ptx, int driver_version, ComputeCapability device);

}  // namespace gradguard::cuda
