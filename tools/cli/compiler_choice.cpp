// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/compiler_choice.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/cli/options.h"

namespace gradguard::tools {

void add_compiler(CLI::App& app, CompilerChoice& choice, const std::string& usual) {
    const auto add = [&app](const char* flag, const char* type, const std::string& description, auto set) {
        app.add_option_function<std::string>(flag, set, description)->type_name(type);
    };
    add("--compiler", "ptx|nvrtc", "kernels compiled ahead of time, or by NVRTC at first use [" + usual + "]",
        [&choice](const std::string& text) {
            if (text != "ptx" && text != "nvrtc") throw UsageError("--compiler: want ptx|nvrtc, got \"" + text + "\"");
            choice.name = text;
        });
    add("--nvrtc", "PATH", "libnvrtc, or a folder with it: a toolkit or a Python environment [the first that is found]",
        [&choice](const std::string& text) {
            if (text.empty()) throw UsageError("--nvrtc: want a path, got nothing");
            choice.nvrtc = text;
        });
}

void print_note(const std::string& text) { fmt::print(stderr, "gradguard: note: {}\n", text); }

}  // namespace gradguard::tools
