// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/ptx_refusals.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "harness/vgpu/decode/program.h"
#include "harness/vgpu/error.h"
#include "harness/vgpu/ptx/parser.h"

namespace gradguard::tools {
namespace {

/// Takes the instructions of a line out of the entry, labels moved along. False when there is none.
bool erase_line(vgpu::ast::Entry& entry, std::uint32_t line) {
    bool found = false;
    for (std::size_t i = 0; i < entry.instructions.size();) {
        if (entry.instructions[i].line != line) {
            ++i;
            continue;
        }
        entry.instructions.erase(entry.instructions.begin() + static_cast<std::ptrdiff_t>(i));
        for (vgpu::ast::Label& label : entry.labels) label.position -= label.position > i ? 1 : 0;
        found = true;
    }
    return found;
}

/// Blanks a line that is one whole statement. False when it is not.
bool blank_statement(std::string& text, std::uint32_t line) {
    std::size_t begin = 0;
    for (std::uint32_t i = 1; i < line && begin != std::string::npos; ++i) {
        begin = text.find('\n', begin);
        if (begin != std::string::npos) ++begin;
    }
    if (begin == std::string::npos) return false;
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view statement = std::string_view(text).substr(begin, end - begin);
    const std::size_t last = statement.find_last_not_of(" \t\r");
    if (last == std::string_view::npos || statement[last] != ';') return false;
    if (std::ranges::count(statement, '{') != std::ranges::count(statement, '}')) return false;
    // A line of its own, not the end of a longer statement.
    const std::size_t before = text.find_last_not_of(" \t\r\n", begin == 0 ? 0 : begin - 1);
    if (begin != 0 && before != std::string::npos && text[before] == ',') return false;
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    return true;
}

std::vector<PtxRefusal> refused_instructions(const vgpu::ast::Module& module, bool allow_approximate) {
    vgpu::decode::Options options;
    options.level = vgpu::VectorLevel::Portable;
    options.allow_approximate = allow_approximate;
    std::vector<PtxRefusal> refusals;
    for (vgpu::ast::Entry entry : module.entries) {
        // The decoder stops at what it refuses; without that line it comes to the next.
        for (bool again = true; again;) {
            again = false;
            try {
                vgpu::decode::decode(module, entry, options);
            } catch (const vgpu::PtxError& error) {
                refusals.push_back({error.line(), error.what()});
                again = erase_line(entry, error.line());
            }
        }
    }
    return refusals;
}

}  // namespace

ReadModule read_module(std::string text, const std::string& file_name, bool allow_approximate) {
    ReadModule read;
    while (read.syntax == nullptr) {
        try {
            read.syntax = vgpu::ptx::parse(text, file_name);
        } catch (const vgpu::PtxError& error) {
            read.refusals.push_back({error.line(), error.what()});
            if (!blank_statement(text, error.line())) return read;
        }
    }
    for (PtxRefusal& refusal : refused_instructions(*read.syntax, allow_approximate))
        read.refusals.push_back(std::move(refusal));
    std::ranges::stable_sort(read.refusals, {}, &PtxRefusal::line);
    return read;
}

}  // namespace gradguard::tools
