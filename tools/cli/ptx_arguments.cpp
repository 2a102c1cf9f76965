// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/ptx_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "harness/io/file_error.h"
#include "tools/cli/number_text.h"
#include "tools/cli/options.h"

namespace gradguard::tools {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 32;
constexpr const char* kTypes = "b, u or s with 8, 16, 32 or 64 bits, f16, bf16, f32, f64";

[[noreturn]] void refuse(const PtxArgument& argument, const std::string& message) {
    throw UsageError(fmt::format("--arg {} ({}): {}", argument.number, argument.text, message));
}

ElementType required_type(const PtxArgument& argument, std::string_view name) {
    const std::optional<ElementType> type = element_type(name);
    if (!type) refuse(argument, fmt::format("no type is called \"{}\"; want {}", name, kTypes));
    return *type;
}

/// "TYPE:VALUE", "TYPE[N]:CONTENT".
PtxArgument parse_one(const std::string& text, std::string number) {
    PtxArgument argument;
    argument.number = std::move(number);
    argument.text = text;
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) refuse(argument, "want TYPE:VALUE, or TYPE[N]:FILE, zero, poison or iota");
    const std::string head = text.substr(0, colon), value = text.substr(colon + 1);
    const std::size_t bracket = head.find('[');
    argument.type = required_type(argument, head.substr(0, bracket));
    if (bracket == std::string::npos) {
        const std::optional<std::uint64_t> bits = parse_element(argument.type, value);
        if (!bits) refuse(argument, fmt::format("\"{}\" is no value of type {}", value, argument.type.name));
        argument.bits = *bits;
        return argument;
    }
    using Content = PtxArgument::Content;
    const bool closed = head.back() == ']';
    const auto count = closed ? parse_u64(head.substr(bracket + 1, head.size() - bracket - 2)) : std::nullopt;
    if (!count || *count > kMostElements) refuse(argument, "want a number of elements up to 2^32 in brackets");
    argument.elements = *count;
    argument.content = value == "zero"     ? Content::kZero
                       : value == "poison" ? Content::kPoison
                       : value == "iota"   ? Content::kIota
                                           : Content::kFile;
    argument.file = value;
    if (value.empty()) refuse(argument, "want a file, zero, poison or iota after the colon");
    return argument;
}

std::vector<std::string> members_of(const std::string& text) {
    std::vector<std::string> members;
    std::string member;
    for (const char c : text.substr(1, text.size() - 2)) {
        if (c == ',') {
            members.push_back(std::exchange(member, {}));
        } else if (c != ' ' || !member.empty()) {
            member += c;
        }
    }
    members.push_back(member);
    return members;
}

std::string describe(const vgpu::EntryInfo& entry) {
    std::string text;
    for (const vgpu::ParamInfo& param : entry.params) {
        text += fmt::format("{}{} ({} bytes)", text.empty() ? "" : ", ", param.name, param.size_bytes);
    }
    return text.empty() ? "none" : text;
}

/// A struct by value: members at their natural alignment, as C++ lays them out.
void add_struct(const vgpu::ParamInfo& param, const std::string& text, const std::string& number,
                std::vector<PtxArgument>& arguments) {
    std::uint32_t offset = 0, alignment = 1;
    std::size_t index = 0;
    for (const std::string& member : members_of(text)) {
        PtxArgument argument = parse_one(member, number + "." + std::to_string(index++));
        const std::uint32_t size = argument.size_bytes();
        offset = (offset + size - 1) / size * size;
        alignment = std::max(alignment, size);
        argument.offset_bytes = param.offset_bytes + offset;
        offset += size;
        arguments.push_back(std::move(argument));
    }
    const std::uint32_t bytes = (offset + alignment - 1) / alignment * alignment;
    if (bytes != param.size_bytes) {
        throw UsageError(fmt::format("--arg {}: parameter {} has {} bytes, the members make {}", number, param.name,
                                     param.size_bytes, bytes));
    }
}

}  // namespace

std::vector<PtxArgument> parse_arguments(const vgpu::EntryInfo& entry, const std::vector<std::string>& texts) {
    if (texts.size() != entry.params.size()) {
        throw UsageError(fmt::format("entry {} takes {} arguments, got {} of --arg; parameters: {}", entry.name,
                                     entry.params.size(), texts.size(), describe(entry)));
    }
    std::vector<PtxArgument> arguments;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const vgpu::ParamInfo& param = entry.params[i];
        const std::string number = std::to_string(i);
        if (texts[i].starts_with('{') && texts[i].ends_with('}')) {
            add_struct(param, texts[i], number, arguments);
            continue;
        }
        PtxArgument argument = parse_one(texts[i], number);
        argument.parameter = param.name;
        argument.offset_bytes = param.offset_bytes;
        if (argument.size_bytes() != param.size_bytes) {
            refuse(argument, fmt::format("parameter {} has {} bytes, this has {}", param.name, param.size_bytes,
                                         argument.size_bytes()));
        }
        arguments.push_back(std::move(argument));
    }
    return arguments;
}

std::size_t find_buffer(const std::vector<PtxArgument>& arguments, const std::string& name, const std::string& flag) {
    const auto at = std::ranges::find_if(arguments, [&](const PtxArgument& argument) {
        return argument.number == name || (!argument.parameter.empty() && argument.parameter == name);
    });
    if (at == arguments.end()) {
        throw UsageError(fmt::format("{} {}: there is no such argument; the first is 0", flag, name));
    }
    if (!at->is_buffer()) throw UsageError(fmt::format("{} {}: {} is no buffer", flag, name, at->text));
    return static_cast<std::size_t>(at - arguments.begin());
}

std::vector<std::byte> initial_bytes(const PtxArgument& argument) {
    if (argument.content == PtxArgument::Content::kPoison) return {};
    std::vector<std::byte> bytes(argument.bytes());
    if (argument.content == PtxArgument::Content::kIota) {
        for (std::uint64_t i = 0; i < argument.elements; ++i) {
            const std::uint64_t bits = element_of_index(argument.type, i);
            std::memcpy(bytes.data() + i * argument.type.bytes, &bits, argument.type.bytes);
        }
    } else if (argument.content == PtxArgument::Content::kFile) {
        const std::string text = read_text(argument.file);
        if (text.size() != bytes.size()) {
            throw harness::FileError(argument.file, fmt::format("want {} bytes for {}[{}], got {}", bytes.size(),
                                                                argument.type.name, argument.elements, text.size()));
        }
        if (!bytes.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    }
    return bytes;
}

std::string read_text(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
    if (!file.is_open() || file.bad() || errno == EISDIR) {
        throw harness::FileError(path, std::string("cannot read: ") + std::strerror(errno == 0 ? EIO : errno));
    }
    return text.str();
}

}  // namespace gradguard::tools
