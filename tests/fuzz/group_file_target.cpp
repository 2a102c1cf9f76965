// SPDX-License-Identifier: Apache-2.0
// Bytes as the file of a group, read in both ways that the program has. What is wrong with one entry is kept beside it,
// so that is a message too.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "tools/cli/group_file.h"

namespace gradguard::fuzz {
namespace {

using tools::FileEntry;
using tools::GroupFile;

void look_at(const GroupFile& group) {
    for (const FileEntry& entry : group.entries) {
        require(!entry.name.empty(), "an entry has a name");
        if (entry.defect) require_one_line(entry.defect->what());
    }
    for (const std::string& note : group.notes) require_one_line(note);
    require(group.gradient_scale.has_value() == group.gradient_scale_text.has_value(), "a scale is a number");
}

/// What a whole entry has is what the program takes its tensors from.
void require_whole(const FileEntry& entry) {
    if (entry.defect) return;
    require(entry.param != nullptr && entry.grad != nullptr, "an entry without defect has parameters and gradients");
    require(!entry.has_state() || (entry.exp_avg != nullptr && entry.exp_avg_sq != nullptr),
            "an entry without defect has both moments or none");
}

void try_file(std::string_view bytes) {
    const MemoryFile input(bytes);
    try {
        const GroupFile gradients = tools::read_gradients(input.path());
        look_at(gradients);
        for (const FileEntry& entry : gradients.entries) {
            require(entry.grad != nullptr && entry.param == nullptr, "gradients alone are read");
        }
        const GroupFile group = tools::read_group(input.path());
        look_at(group);
        for (const FileEntry& entry : group.entries) require_whole(entry);
        require(group.entries.size() >= gradients.entries.size(), "a gradient belongs to an entry");
        tools::require_same_names(gradients, gradients);
        tools::require_same_names(group, gradients);
    } catch (const harness::FileError& error) {
        require_one_line(error.what());
    }
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_file(gradguard::fuzz::as_text(data, size));
    return 0;
}
