// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace gradguard::testing {

Ended run_exactly(const std::vector<std::string>& arguments, const std::string& standard_output) {
    const TemporaryFolder folder;
    const std::string out = standard_output.empty() ? folder.path("out") : standard_output;
    const std::string err = folder.path("err");
    std::vector<std::string> words{std::string(GRADGUARD_BINARY_DIR) + "/gradguard"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t child = 0;
    const int failure = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw std::runtime_error("cannot run " + words[0] + ": " + std::strerror(failure));
    int status = 0;
    if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for " + words[0]);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, standard_output.empty() ? read_bytes(out) : "",
            read_bytes(err)};
}

Ended run_program(const std::vector<std::string>& arguments, const std::string& standard_output) {
    std::vector<std::string> words = arguments;
    const bool uses_device = !words.empty() && (words[0] == "step" || words[0] == "stats");
    if (uses_device && std::find(words.begin(), words.end(), "--observe") == words.end()) {
        words.insert(words.begin() + 1, {"--observe", "all"});
    }
    return run_exactly(words, standard_output);
}

GroupBuilder& GroupBuilder::raw(const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape,
                                std::vector<std::byte> bytes) {
    tensors_[name] = {dtype, std::move(shape), std::move(bytes)};
    return *this;
}

GroupBuilder& GroupBuilder::f32(const std::string& name, const std::vector<float>& values,
                                std::vector<std::uint64_t> shape) {
    const auto bytes = std::as_bytes(std::span(values));
    if (shape.empty()) shape = {values.size()};
    return raw(name, "F32", std::move(shape), {bytes.begin(), bytes.end()});
}

GroupBuilder& GroupBuilder::bf16(const std::string& name, const std::vector<float>& values) {
    std::vector<std::byte> bytes;
    for (const float value : values) {
        const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
        const auto pair = std::as_bytes(std::span(&upper, 1));
        bytes.insert(bytes.end(), pair.begin(), pair.end());
    }
    return raw(name, "BF16", {values.size()}, std::move(bytes));
}

GroupBuilder& GroupBuilder::meta(const std::string& key, const std::string& value) {
    metadata_[key] = value;
    return *this;
}

GroupBuilder& GroupBuilder::entry(const std::string& name, const std::vector<float>& grad) {
    return f32(name + ".param", std::vector<float>(grad.size(), 1.0F)).f32(name + ".grad", grad);
}

GroupBuilder& GroupBuilder::moments(const std::string& name, const std::vector<float>& first,
                                    const std::vector<float>& second) {
    return f32(name + ".exp_avg", first).f32(name + ".exp_avg_sq", second);
}

std::string GroupBuilder::write(const TemporaryFolder& folder, const std::string& file) const {
    std::map<std::string, harness::SafetensorsOutput> outputs;
    for (const auto& [name, stored] : tensors_) outputs[name] = {stored.dtype, stored.shape, stored.bytes};
    const std::string path = folder.path(file);
    harness::write_safetensors(path, outputs, metadata_);
    return path;
}

std::vector<std::uint32_t> bits_in(const std::string& path, const std::string& tensor) {
    const harness::SafetensorsFile file(path);
    const std::span<const std::byte> bytes = file.data(file.tensors().at(tensor));
    std::vector<std::uint32_t> bits(bytes.size() / sizeof(std::uint32_t));
    if (!bits.empty()) std::memcpy(bits.data(), bytes.data(), bytes.size());
    return bits;
}

}  // namespace gradguard::testing
