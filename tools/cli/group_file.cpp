// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/group_file.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "tools/cli/number_text.h"

namespace gradguard::tools {
namespace {

using harness::FileError;
using harness::in_quotes;
using harness::SafetensorsFile;
using harness::SafetensorsTensor;

/// One kind of tensor in a group: its name's ending and what the contract calls it.
struct Role {
    std::string_view suffix;
    std::string_view operand;
    const SafetensorsTensor* FileEntry::*member;
};

constexpr Role kRoles[] = {
    {".param", "parameters", &FileEntry::param},
    {".grad", "gradients", &FileEntry::grad},
    {".exp_avg", "first_moment", &FileEntry::exp_avg},
    {".exp_avg_sq", "second_moment", &FileEntry::exp_avg_sq},
    {".max_exp_avg_sq", "max_second_moment", &FileEntry::max_exp_avg_sq},
};

std::map<std::string, FileEntry> collect(const SafetensorsFile& file) {
    std::map<std::string, FileEntry> entries;
    for (const auto& [name, tensor] : file.tensors()) {
        const auto* role = std::ranges::find_if(
            kRoles, [&tensor_name = name](const Role& r) { return tensor_name.ends_with(r.suffix); });
        if (role == std::end(kRoles) || name.size() == role->suffix.size()) {
            throw FileError(file.path(), name,
                            "want a name that ends in .param, .grad, .exp_avg, .exp_avg_sq or .max_exp_avg_sq");
        }
        const std::string entry_name = name.substr(0, name.size() - role->suffix.size());
        FileEntry& entry = entries[entry_name];
        entry.name = entry_name;
        entry.*role->member = &tensor;
    }
    return entries;
}

void read_scale(GroupFile& group) {
    const auto found = group.file->metadata().find("gradient_scale");
    if (found == group.file->metadata().end()) return;
    group.gradient_scale_text = found->second;
    group.gradient_scale = parse_float(found->second);
    if (!group.gradient_scale) {
        throw FileError(group.file->path(), "metadata gradient_scale: want a decimal or hexadecimal number, got " +
                                                in_quotes(found->second));
    }
}

/// Fills in the completed steps of one entry or finds out why there is no such number.
class StepReader {
  public:
    explicit StepReader(GroupFile& group) : group_(group) {}

    std::optional<Error> read(FileEntry& entry, std::size_t index) {
        const auto& metadata = group_.file->metadata();
        auto found = metadata.find(entry.name + ".step");
        if (found == metadata.end()) found = metadata.find("step");
        if (!entry.has_state()) {
            if (found != metadata.end() && found->second != "0") note_ignored(entry, found->first, found->second);
            return std::nullopt;
        }
        const auto fail = [&](const std::string& message) {
            return Error(ErrorKind::kInvalidState, {.entry = index, .operand = "step"}, message);
        };
        if (found == metadata.end()) {
            return fail("want metadata " + in_quotes(entry.name + ".step") +
                        " or \"step\" beside the moments, got neither");
        }
        const std::optional<std::uint64_t> step = parse_u64(found->second);
        if (!step) return fail("want an integer from 1 to 2^64 - 1, got " + in_quotes(found->second));
        entry.step = *step;
        return std::nullopt;
    }

  private:
    void note_ignored(const FileEntry& entry, const std::string& key, const std::string& text) {
        if (key == "step" && std::exchange(noted_common_, true)) return;
        group_.notes.push_back(group_.file->path() + ": metadata " + in_quotes(key) + " = " + in_quotes(text) +
                               " ignored for " + in_quotes(entry.name) + (key == "step" ? " and others like it" : "") +
                               ": no moments, so this is a first step");
    }

    GroupFile& group_;
    bool noted_common_ = false;
};

std::optional<Error> find_missing(const FileEntry& entry, std::size_t index) {
    const auto missing = [&](ErrorKind kind, const Role& role, const std::string& beside) {
        return Error(kind, {.entry = index, .operand = std::string(role.operand)},
                     "tensor " + in_quotes(entry.name + std::string(role.suffix)) + " is missing" + beside);
    };
    if (entry.param == nullptr) return missing(ErrorKind::kInvalidTensor, kRoles[0], "");
    if (entry.grad == nullptr) return missing(ErrorKind::kInvalidTensor, kRoles[1], "");
    if (!entry.has_state()) return std::nullopt;
    if (entry.exp_avg == nullptr) return missing(ErrorKind::kInvalidState, kRoles[2], " beside the other moments");
    if (entry.exp_avg_sq == nullptr) return missing(ErrorKind::kInvalidState, kRoles[3], " beside the other moments");
    return std::nullopt;
}

/// A dtype that the format has and the contract does not; the library judges the contract's own.
std::optional<Error> find_foreign_dtype(const FileEntry& entry, std::size_t index) {
    for (const Role& role : kRoles) {
        const SafetensorsTensor* tensor = entry.*role.member;
        if (tensor == nullptr || harness::contract_dtype(tensor->dtype)) continue;
        const bool gradient = role.member == &FileEntry::grad;
        return Error(ErrorKind::kInvalidTensor, {.entry = index, .operand = std::string(role.operand)},
                     std::string("want dtype ") + (gradient ? "F32, F16 or BF16" : "F32") + ", got " + tensor->dtype);
    }
    return std::nullopt;
}

}  // namespace

GroupFile read_group(const std::string& path) {
    GroupFile group;
    group.file = std::make_shared<const SafetensorsFile>(path);
    read_scale(group);
    StepReader steps(group);
    for (auto& [name, entry] : collect(*group.file)) {
        const std::size_t index = group.entries.size();
        entry.defect = find_missing(entry, index);
        if (!entry.defect) entry.defect = find_foreign_dtype(entry, index);
        if (!entry.defect) entry.defect = steps.read(entry, index);
        group.entries.push_back(std::move(entry));
    }
    return group;
}

GroupFile read_gradients(const std::string& path) {
    GroupFile group;
    group.file = std::make_shared<const SafetensorsFile>(path);
    read_scale(group);
    for (auto& [name, entry] : collect(*group.file)) {
        if (entry.grad == nullptr) continue;
        FileEntry gradients_only;
        gradients_only.name = name;
        gradients_only.grad = entry.grad;
        gradients_only.defect = find_foreign_dtype(gradients_only, group.entries.size());
        group.entries.push_back(std::move(gradients_only));
    }
    return group;
}

void require_same_names(const GroupFile& first, const GroupFile& later) {
    const auto has = [](const GroupFile& group, const std::string& name) {
        return std::ranges::binary_search(group.entries, name, {}, &FileEntry::name);
    };
    for (const FileEntry& entry : first.entries) {
        if (!has(later, entry.name)) {
            throw FileError(later.file->path(), entry.name + ".grad",
                            "is missing; the first file of the run has this entry");
        }
    }
    for (const FileEntry& entry : later.entries) {
        if (!has(first, entry.name)) {
            throw FileError(later.file->path(), entry.name + ".grad", "the first file of the run has no such entry");
        }
    }
}

}  // namespace gradguard::tools
