// SPDX-License-Identifier: Apache-2.0
// Bytes as a command line, an argument on each line; only read, never carried out. Of `ptx`, the arguments of a kernel
// are read as well, for a kernel with a parameter of each size.
#include <cmath>
#include <iostream>
#include <sstream>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tools/cli/options.h"
#include "tools/cli/ptx_arguments.h"

namespace gradguard::fuzz {
namespace {

/// Help is printed while the command line is read.
class Swallowed {
  public:
    Swallowed() : standard_(std::cout.rdbuf(text_.rdbuf())) {}
    ~Swallowed() { std::cout.rdbuf(standard_); }
    Swallowed(const Swallowed&) = delete;
    Swallowed& operator=(const Swallowed&) = delete;

  private:
    std::ostringstream text_;
    std::streambuf* standard_;
};

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        // A zero byte ends an argument of a process.
        lines.emplace_back(std::string(text.substr(begin, end - begin)).c_str());
        begin = end + 1;
    }
    return lines;
}

/// As many parameters as there are arguments, of 1 to 8 bytes in turn and a struct of 16.
vgpu::EntryInfo kernel_for(std::size_t arguments) {
    vgpu::EntryInfo entry;
    entry.name = "kernel";
    for (std::size_t i = 0; i < arguments; ++i) {
        constexpr std::uint32_t kSizes[] = {8, 4, 16, 2, 1};
        vgpu::ParamInfo param;
        param.name = "p" + std::to_string(i);
        param.size_bytes = kSizes[i % std::size(kSizes)];
        param.offset_bytes = static_cast<std::uint32_t>(16 * i);
        entry.params.push_back(param);
    }
    return entry;
}

void look_at(const tools::PtxRequest& request) {
    const auto arguments = tools::parse_arguments(kernel_for(request.arguments.size()), request.arguments);
    for (const tools::PtxArgument& argument : arguments) {
        require(argument.type.bytes >= 1 && argument.type.bytes <= 8, "an element has 1 to 8 bytes");
        if (argument.is_buffer()) continue;
        const std::string shown = tools::element_text(argument.type, argument.bits);
        const std::optional<std::uint64_t> again = tools::parse_element(argument.type, shown);
        require(again.has_value(), "the text of a value is a value");
        if (shown.find("nan") == std::string::npos) require(again == argument.bits, "and brings the same bits back");
    }
    for (const auto& [name, file] : request.outs) tools::find_buffer(arguments, name, "--out");
    for (const std::string& name : request.read_only) tools::find_buffer(arguments, name, "--read-only");
}

void try_line(std::string_view text) {
    const Swallowed help;
    std::vector<std::string> arguments = lines_of(text);
    std::string program = "gradguard";
    std::vector<char*> argv{program.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    try {
        const tools::Request request = tools::parse_command_line(static_cast<int>(argv.size() - 1), argv.data());
        if (request.command == tools::Command::kPtx) look_at(request.ptx);
    } catch (const tools::UsageError& error) {
        require_one_line(error.what());
    }
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_line(gradguard::fuzz::as_text(data, size));
    return 0;
}
