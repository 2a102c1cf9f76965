// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/faulted_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

std::vector<std::string> environment(const std::vector<std::string>& more) {
    std::vector<std::string> all = more;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (!text.starts_with("LD_PRELOAD=") && !text.starts_with("ASAN_OPTIONS=")) all.push_back(text);
    }
    // A sanitizer's runtime wants to be the first library of all; that it is the second does no harm here.
    const char* asan = std::getenv("ASAN_OPTIONS");
    all.push_back("ASAN_OPTIONS=" + (asan == nullptr ? std::string() : std::string(asan) + ":") +
                  "verify_asan_link_order=0");
    return all;
}

}  // namespace

FaultedRun run_faulted(const std::vector<std::string>& arguments, const std::string& folder,
                       std::optional<std::size_t> at, const std::string& fault) {
    const TemporaryFolder own;
    const std::string err = own.path("err"), count = own.path("count");
    std::vector<std::string> words{std::string(GRADGUARD_BINARY_DIR) + "/gradguard"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables =
        environment({"TMPDIR=" + own.path(""), "LD_PRELOAD=" GRADGUARD_WRITE_FAULTS, "GRADGUARD_FAULT_FOLDER=" + folder,
                     "GRADGUARD_FAULT_COUNT=" + count, "GRADGUARD_FAULT=" + fault});
    if (at) variables.push_back("GRADGUARD_FAULT_AT=" + std::to_string(*at));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t child = 0;
    const int failure =
        posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw std::runtime_error("cannot run " + words[0] + ": " + std::strerror(failure));
    int status = 0;
    if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for " + words[0]);
    FaultedRun run;
    if (WIFEXITED(status)) run.status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
    run.err = read_bytes(err);
    std::istringstream lines(read_bytes(count));
    for (std::string line; std::getline(lines, line);) run.calls.push_back(line);
    return run;
}

}  // namespace gradguard::testing
