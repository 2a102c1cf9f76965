// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "harness/vgpu/options.h"

namespace gradguard::vdriver {

/// What control.h says of its members.
struct Configuration {
    std::string observers = "none";
    bool hold_back = true;
    bool count = false;
    std::string report;
    int driver_version = 13020;
    bool version_was_given = false;
    int capability_major = 8;
    int capability_minor = 0;
    vgpu::MachineOptions machine = default_machine();  ///< seed, limits, allow_approximate, flush_subnormals

    /// Whether allocations that live at the end are findings.
    bool wants_leaks() const;
    /// `observers` for observers::ObserverSet: without leaks.
    std::string observers_to_attach() const;

  private:
    static vgpu::MachineOptions default_machine();
};

/// Throws std::invalid_argument with one line that names the member.
Configuration parse_configuration(std::string_view json);
nlohmann::ordered_json to_json(const Configuration& configuration);

}  // namespace gradguard::vdriver
