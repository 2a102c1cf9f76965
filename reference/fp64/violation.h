// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reference/contract/error.h"

namespace gradguard::reference {

/// A broken rule of contract section 3, as a value. The oracle's rules return it; raise() makes it an Error.
struct Violation {
    ErrorKind kind = ErrorKind::kInvalidOption;
    ErrorSite site;
    std::string message;  ///< What was wanted and what came.
};

/// Member by member: g++ 12 warns of uninitialized strings where the aggregates are built in one expression.
inline Violation make_violation(ErrorKind kind, std::optional<std::size_t> entry, std::string_view operand,
                                std::string message) {
    Violation violation;
    violation.kind = kind;
    violation.site.entry = entry;
    violation.site.operand = operand;
    violation.message = std::move(message);
    return violation;
}

[[noreturn]] inline void raise(const Violation& violation) {
    throw Error(violation.kind, violation.site, violation.message);
}

}  // namespace gradguard::reference
