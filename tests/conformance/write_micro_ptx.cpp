// SPDX-License-Identifier: Apache-2.0
// gradguard_write_micro_ptx FOLDER: one .ptx file for each instruction under test; files of others are removed.
// gradguard_write_micro_ptx FOLDER NAME...: the files of these instructions alone, whether the table has them or not.
// gradguard_write_micro_ptx --lacking: the instructions of the table that lack a model or a test; exit 1 if there are
// any.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/vgpu/module.h"
#include "tests/conformance/instruction_list.h"
#include "tests/conformance/micro_file.h"

namespace {

using namespace gradguard::conformance;

int list_lacking() {
    const std::vector<std::string> table = gradguard::vgpu::instruction_names();
    const std::vector<std::string> tested = instructions_under_test();
    std::size_t lacking = 0;
    for (const std::string& name : table) {
        const bool has_test = std::binary_search(tested.begin(), tested.end(), name);
        const bool has_model = find_model(name).has_value();
        if (has_test && has_model) continue;
        ++lacking;
        std::printf("%s: no %s\n", name.c_str(), has_model ? "test" : "model");
    }
    std::printf("%zu instructions in the table, %zu forms under test, %zu lack a model or a test\n", table.size(),
                tested.size(), lacking);
    return lacking == 0 ? 0 : 1;
}

int write_files(const std::filesystem::path& folder, const std::vector<std::string>& names, bool remove_others) {
    std::filesystem::create_directories(folder);
    std::vector<std::string> written;
    for (const std::string& name : names) {
        const auto model = find_model(name);
        if (!model) {
            std::fprintf(stderr, "%s: no model\n", name.c_str());
            continue;
        }
        written.push_back(micro_file_name(name));
        std::ofstream file(folder / written.back());
        file << micro_file_text(*model);
        if (!file.flush()) {
            std::fprintf(stderr, "%s: cannot be written\n", (folder / written.back()).c_str());
            return 1;
        }
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const bool is_ours =
            std::find(written.begin(), written.end(), entry.path().filename().string()) != written.end();
        if (remove_others && entry.path().extension() == ".ptx" && !is_ours) std::filesystem::remove(entry.path());
    }
    std::printf("%zu files\n", written.size());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string(argv[1]) == "--lacking") return list_lacking();
    if (argc >= 2 && argv[1][0] != '-') {
        const std::vector<std::string> chosen(argv + 2, argv + argc);
        return write_files(argv[1], chosen.empty() ? instructions_under_test() : chosen, chosen.empty());
    }
    std::fprintf(stderr, "usage: gradguard_write_micro_ptx FOLDER [NAME...] | --lacking\n");
    return 2;
}
