// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "reference/contract/error.h"

namespace gradguard::testing {

/// The error that `action` throws; fails the test when it throws none.
template <class Action>
std::optional<Error> error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "no error was thrown";
    return std::nullopt;
}

}  // namespace gradguard::testing
