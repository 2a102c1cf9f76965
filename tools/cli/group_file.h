// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/io/safetensors.h"
#include "reference/contract/error.h"

namespace gradguard::tools {

/// One entry of a group as it lies in a file; the pointers are into the file's header, null where there is none.
struct FileEntry {
    std::string name;
    const harness::SafetensorsTensor* param = nullptr;
    const harness::SafetensorsTensor* grad = nullptr;
    const harness::SafetensorsTensor* exp_avg = nullptr;
    const harness::SafetensorsTensor* exp_avg_sq = nullptr;
    const harness::SafetensorsTensor* max_exp_avg_sq = nullptr;
    std::uint64_t step = 0;  ///< Completed steps; meaningful where there are moments.
    /// What keeps this entry from being one at all (a missing tensor, a dtype the contract does not have, a missing
    /// step). Kept, not thrown: options and earlier entries are reported first (contract section 3, order).
    std::optional<Error> defect;

    bool has_state() const { return exp_avg != nullptr || exp_avg_sq != nullptr || max_exp_avg_sq != nullptr; }
};

/// A group in a file, entries in the order of their names' bytes.
struct GroupFile {
    std::shared_ptr<const harness::SafetensorsFile> file;
    std::vector<FileEntry> entries;
    std::optional<std::string> gradient_scale_text;  ///< Metadata.
    std::optional<float> gradient_scale;
    std::vector<std::string> notes;  ///< What was ignored and why, a line each.
};

/// Reads parameters, gradients and state. Throws harness::FileError for a broken file, a tensor whose name has none of
/// the known endings, or a gradient_scale that is no number.
GroupFile read_group(const std::string& path);

/// Reads only the gradients and their scale; entries without a gradient are left out.
GroupFile read_gradients(const std::string& path);

/// Throws harness::FileError unless `later` has gradients of exactly the names of `first`.
void require_same_names(const GroupFile& first, const GroupFile& later);

}  // namespace gradguard::tools
