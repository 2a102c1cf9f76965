// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>

namespace gradguard::testing {

/// The source tree, for files that tests read. A build that was carried to another machine finds them where the
/// environment variable GRADGUARD_TEST_SOURCE_DIR says.
inline std::filesystem::path source_folder() {
    const char* elsewhere = std::getenv("GRADGUARD_TEST_SOURCE_DIR");
    return elsewhere != nullptr && *elsewhere != '\0' ? elsewhere : GRADGUARD_SOURCE_DIR;
}

}  // namespace gradguard::testing
