// SPDX-License-Identifier: Apache-2.0
// Runs the same entries of several PTX files on the same input and prints what each gave, for a script to compare:
//   programs_run_ptx GRID BLOCK OUT_WORDS SEED INPUT_FILE ENTRY[,ENTRY...] FILE.ptx...
// An entry takes (const unsigned* in, unsigned* out). One line for each file and entry: "FILE ENTRY ok HEX...", or
// "FILE ENTRY finding TEXT", or "FILE * refused TEXT". Exit 0 whatever the lines say, 2 for bad arguments.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

Words read_words(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file || bytes.size() % sizeof(std::uint32_t) != 0) throw std::runtime_error("no words in " + path);
    Words words(bytes.size() / sizeof(std::uint32_t));
    bytes.copy(reinterpret_cast<char*>(words.data()), bytes.size());
    return words;
}

std::string one_line(std::string text) {
    for (char& c : text) {
        if (c == '\n') c = ' ';
    }
    return text;
}

void run_entries(const std::string& path, const std::string& entries, const vgpu::LaunchConfig& config,
                 const std::vector<Argument>& arguments, std::uint64_t seed) {
    std::shared_ptr<const vgpu::Module> module;
    try {
        module = load(path);
    } catch (const vgpu::PtxError& error) {
        std::printf("%s * refused %s\n", path.c_str(), error.what());
        return;
    }
    std::istringstream names(entries);
    for (std::string entry; std::getline(names, entry, ',');) {
        const Outcome got = launch(*module, entry, config, arguments, seed);
        std::printf("%s %s ", path.c_str(), entry.c_str());
        if (!got.findings.empty()) {
            std::printf("finding %s\n", one_line(got.findings).c_str());
            continue;
        }
        std::printf("ok");
        for (const std::uint32_t word : got.outputs.at(0)) std::printf(" %08x", word);
        std::printf("\n");
    }
}

int main_of(int count, char** values) {
    if (count < 8) throw std::runtime_error("wants GRID BLOCK OUT_WORDS SEED INPUT_FILE ENTRIES FILE.ptx...");
    const auto number = [&](int i) { return static_cast<std::uint32_t>(std::stoul(values[i])); };
    const vgpu::LaunchConfig config{{number(1)}, {number(2)}, 0};
    const std::vector<Argument> arguments = {input(read_words(values[5])), output(number(3))};
    for (int i = 7; i < count; ++i) run_entries(values[i], values[6], config, arguments, std::stoull(values[4]));
    return 0;
}

}  // namespace
}  // namespace gradguard::programs

int main(int count, char** values) {
    try {
        return gradguard::programs::main_of(count, values);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "programs_run_ptx: %s\n", error.what());
        return 2;
    }
}
