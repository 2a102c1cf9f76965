// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "harness/case/case.h"

namespace gradguard::harness {

inline constexpr std::array<Operation, 3> kAllOperations{Operation::kGuardedStep, Operation::kUnguardedStep,
                                                         Operation::kStatistics};

/// "guarded_step", "unguarded_step", "statistics": stable, they stand in case files and reports.
constexpr std::string_view to_string(Operation operation) {
    switch (operation) {
        case Operation::kGuardedStep:
            return "guarded_step";
        case Operation::kUnguardedStep:
            return "unguarded_step";
        case Operation::kStatistics:
            return "statistics";
    }
    return "?";
}

}  // namespace gradguard::harness
