// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_command.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "harness/devices/virtual_driver.h"
#include "harness/io/atomic_file.h"
#include "harness/io/file_error.h"
#include "tools/cli/options.h"
#include "tools/cli/ptx_arguments.h"
#include "tools/cli/run_report.h"

extern char** environ;

namespace gradguard::tools {
namespace {

using Json = nlohmann::ordered_json;

/// A folder for the time of one run, with the driver under the names by which programs look for it.
class DriverFolder {
  public:
    DriverFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "gradguard-run-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw harness::FileError(name, "cannot make this folder");
        path_ = name;
        const std::filesystem::path library = harness::virtual_driver_library();
        if (!library.has_parent_path())
            throw harness::DeviceUnavailable("no virtual driver: " + library.string() + " is not beside this program");
        for (const char* link : {"libcuda.so.1", "libcuda.so"})
            std::filesystem::create_symlink(std::filesystem::absolute(library), path_ / link);
    }
    ~DriverFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    DriverFolder(const DriverFolder&) = delete;
    DriverFolder& operator=(const DriverFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    /// Of each process that called the driver, in no order.
    std::vector<Json> reports() const {
        std::vector<Json> reports;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            if (entry.path().extension() != ".json") continue;
            Json report = Json::parse(read_text(entry.path().string()), nullptr, false);
            if (report.is_discarded())
                throw harness::FileError(entry.path().string(), "a process ended while it wrote its report");
            reports.push_back(std::move(report));
        }
        return reports;
    }

  private:
    std::filesystem::path path_;
};

std::string configuration(const RunRequest& request, const std::filesystem::path& folder) {
    return Json{{"observers", request.observers},
                {"seed", request.seed},
                {"count", request.count},
                {"allow_approximate", !request.refuse_approximate},
                {"flush_subnormals", request.flush_subnormals},
                {"compute_capability", request.compute_capability},
                {"report", (folder / "%p.json").string()}}
        .dump();
}

/// The environment with the driver's folder in front of where libraries are looked for.
std::vector<std::string> environment(const RunRequest& request, const std::filesystem::path& folder) {
    const std::string paths = "LD_LIBRARY_PATH=", driver = "GRADGUARD_VDRIVER=";
    std::vector<std::string> variables;
    std::string search = folder.string();
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (text.starts_with(paths) && text.size() > paths.size())
            search += ":" + text.substr(paths.size());
        else if (!text.starts_with(paths) && !text.starts_with(driver))
            variables.push_back(text);
    }
    variables.push_back(paths + search);
    variables.push_back(driver + configuration(request, folder));
    return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

volatile sig_atomic_t child = 0;
void pass_on(int signal_number) {
    if (child != 0) kill(child, signal_number);
}

/// While it lives, signals that ask this program to end go to the child, which ends in its own way; then what its
/// kernels did can still be told. A terminal sends SIGINT to both: that one is left to the child.
class SignalsToChild {
  public:
    SignalsToChild() {
        struct sigaction action {};
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            action.sa_handler = kSignals[i] == SIGINT ? SIG_IGN : pass_on;
            sigaction(kSignals[i], &action, &before_[i]);
        }
    }
    ~SignalsToChild() {
        for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
        child = 0;
    }

    static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

  private:
    std::array<struct sigaction, kSignals.size()> before_{};
};

/// Runs the program; its exit status as a shell has it.
int run_child(const RunRequest& request, const std::filesystem::path& folder) {
    std::vector<std::string> program = request.program, variables = environment(request, folder);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int number : SignalsToChild::kSignals) sigaddset(&defaults, number);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const SignalsToChild signals;
    pid_t started = 0;
    const int failure = posix_spawnp(&started, program[0].c_str(), nullptr, &attributes, pointers(program).data(),
                                     pointers(variables).data());
    posix_spawnattr_destroy(&attributes);
    if (failure != 0) throw UsageError("run: cannot start " + program[0] + ": " + std::strerror(failure));
    child = started;
    int status = 0;
    while (waitpid(started, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_program(const RunRequest& request) {
    const DriverFolder folder;
    std::fflush(stdout);
    const int status = run_child(request, folder.path());
    const std::vector<Json> reports = folder.reports();
    Json result{{"program", request.program}, {"status", status}};
    std::string text;
    bool complaints = false, idle = true;
    if (!reports.empty()) {
        const Json report = merge_reports(reports);
        complaints = has_complaints(report);
        idle = launches_in(report) == 0;
        text = report_text(report);
        result.update(report);
    }
    if (idle) text += "nothing was launched on the virtual GPU: no kernel was checked\n";
    fmt::print(stderr, "{}", text);
    if (request.report) {
        harness::AtomicFile file(*request.report);
        const std::string json = result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
        file.write(std::as_bytes(std::span(json)));
        file.commit();
    }
    if (request.json) fmt::print("{}\n", result.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (complaints || (idle && status == 0)) return kDeviceTrouble;
    return status;
}

}  // namespace gradguard::tools
