// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/write_points.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/faults/faulted_program.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

using Files = std::map<std::string, std::string>;

/// How write_faults.cpp is told.
std::string told(WriteFault fault) {
    switch (fault) {
        case WriteFault::kInterrupt:
            return "signal:" + std::to_string(SIGINT);
        case WriteFault::kTerminate:
            return "signal:" + std::to_string(SIGTERM);
        case WriteFault::kKill:
            return "signal:" + std::to_string(SIGKILL);
        case WriteFault::kKillHalfWay:
            return "half:" + std::to_string(SIGKILL);
        case WriteFault::kFull:
            return "error:" + std::to_string(ENOSPC);
        case WriteFault::kBroken:
            return "error:" + std::to_string(EIO);
        case WriteFault::kShort:
            return "short";
        case WriteFault::kInterrupted:
            return "error:" + std::to_string(EINTR);
    }
    return "";
}

/// The signal that it sends, or 0.
int signal_of(WriteFault fault) {
    switch (fault) {
        case WriteFault::kInterrupt:
            return SIGINT;
        case WriteFault::kTerminate:
            return SIGTERM;
        case WriteFault::kKill:
        case WriteFault::kKillHalfWay:
            return SIGKILL;
        default:
            return 0;
    }
}

/// Whether the fault can happen to this call and says something new there.
bool applies(WriteFault fault, const std::string& call) {
    if (fault == WriteFault::kKillHalfWay || fault == WriteFault::kShort) return call == "write";
    if (fault == WriteFault::kInterrupted) return call == "write" || call == "fsync" || call == "open";
    return true;
}

void put(const std::string& folder, const Files& files) {
    for (const auto& [name, bytes] : files) {
        const std::filesystem::path path = std::filesystem::path(folder) / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << bytes;
    }
}

Files files_in(const std::string& folder) {
    Files files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file()) continue;
        files[std::filesystem::relative(entry.path(), folder).string()] = read_bytes(entry.path().string());
    }
    return files;
}

bool is_temporary(const std::string& name) { return name.ends_with(".tmp"); }

/// A report that holds times is another one in each run; it is whole when it ends as it must.
bool is_whole(const std::string& name, const std::string& got, const std::string& undisturbed) {
    if (got == undisturbed) return true;
    const std::string file = std::filesystem::path(name).filename().string();
    if (file == "report.json") return nlohmann::json::accept(got);
    if (file == "junit.xml") return got.ends_with("</testsuites>\n");
    if (file == "report.html") return got.ends_with("</html>\n");
    return false;
}

class WritePoints {
  public:
    explicit WritePoints(const Writer& writer) : writer_(writer) {
        const TemporaryFolder folder;
        make(folder);
        const FaultedRun run = start(folder);
        found_.calls = run.calls;
        if (run.status != writer_.status) problem("undisturbed", "status " + std::to_string(run.status) + run.err);
        after_ = files_in(folder.path("w"));
    }

    WriteEnumeration run(const std::vector<WriteFault>& faults) {
        for (std::size_t k = 0; k < found_.calls.size(); ++k) {
            for (const WriteFault fault : faults) {
                if (applies(fault, found_.calls[k])) point(k, fault);
            }
        }
        return found_;
    }

  private:
    void make(const TemporaryFolder& folder) const {
        std::filesystem::create_directory(folder.path("w"));
        put(folder.path("w"), writer_.before);
    }
    FaultedRun start(const TemporaryFolder& folder, std::optional<std::size_t> at = std::nullopt,
                     const std::string& fault = {}) const {
        return run_faulted(writer_.arguments(folder.path("w")), folder.path("w"), at, fault);
    }
    void problem(const std::string& at, const std::string& what) { found_.problems.push_back(at + ": " + what); }

    void point(std::size_t k, WriteFault fault) {
        const std::string at = to_string(fault) + " at call " + std::to_string(k) + " (" + found_.calls[k] + ")";
        ++found_.points;
        const TemporaryFolder folder;
        make(folder);
        const FaultedRun run = start(folder, k, told(fault));
        const Files files = files_in(folder.path("w"));
        expect_whole_files(at, files, signal_of(fault) == SIGKILL || found_.calls[k] == "unlink");
        if (signal_of(fault) != 0) {
            expect_signal(at, run, signal_of(fault));
        } else if (fault == WriteFault::kFull || fault == WriteFault::kBroken) {
            expect_failure(at, run, k, files);
        } else {
            if (run.status != writer_.status) problem(at, "status " + std::to_string(run.status) + ": " + run.err);
            expect_all_written(at, files);
        }
        if (signal_of(fault) != SIGKILL) return;
        const FaultedRun next = start(folder);
        if (next.status != writer_.status) problem(at, "the next run fails: " + next.err);
        expect_all_written(at + ", next run", files_in(folder.path("w")));
    }

    void expect_whole_files(const std::string& at, const Files& files, bool may_leave_temporary) {
        for (const auto& [name, bytes] : files) {
            if (is_temporary(name)) {
                if (!may_leave_temporary) problem(at, "left " + name);
                continue;
            }
            const auto before = writer_.before.find(name);
            const Files::const_iterator after = after_.find(name);
            const bool is_old = before != writer_.before.end() && bytes == before->second;
            const bool is_new = after != after_.end() && is_whole(name, bytes, after->second);
            if (!is_old && !is_new) problem(at, name + " is neither the old file nor the new one");
        }
        for (const auto& [name, bytes] : writer_.before) {
            if (!files.contains(name)) problem(at, name + " is gone");
        }
    }

    void expect_all_written(const std::string& at, const Files& files) {
        for (const auto& [name, bytes] : after_) {
            const auto found = files.find(name);
            if (found == files.end() || !is_whole(name, found->second, bytes)) problem(at, name + " is not written");
        }
    }

    void expect_signal(const std::string& at, const FaultedRun& run, int signal) {
        const bool died = run.signal == signal;
        const bool told = writer_.stops && run.status == 128 + signal;
        if (!died && !told)
            problem(at, "status " + std::to_string(run.status) + ", signal " + std::to_string(run.signal));
    }

    void expect_failure(const std::string& at, const FaultedRun& run, std::size_t k, const Files& files) {
        const std::string& call = found_.calls[k];
        // Nothing is lost by these: the data are on disk before the file is closed, and who cannot remove a temporary
        // file has no other way.
        const bool harmless = call == "close" || call == "unlink";
        if (harmless) {
            if (run.status != writer_.status) problem(at, "status " + std::to_string(run.status) + ": " + run.err);
            expect_all_written(at, files);
            return;
        }
        const int wanted = writer_.has_another_place ? writer_.status : 2;
        if (run.status != wanted)
            problem(at, "status " + std::to_string(run.status) + ", want " + std::to_string(wanted));
        const bool one_line = std::ranges::count(run.err, '\n') == 1 && run.err.starts_with("gradguard: ");
        if (!one_line && !writer_.has_another_place)
            problem(at, "want one line that says what is wrong, got \"" + run.err + "\"");
        // The file of this call is new exactly when it was renamed before; all files before it are new.
        const auto upto = found_.calls.begin() + static_cast<std::ptrdiff_t>(k);
        const auto renamed = static_cast<std::size_t>(std::count(found_.calls.begin(), upto, "rename"));
        std::size_t changed = 0;
        for (const auto& [name, bytes] : files) {
            const auto before = writer_.before.find(name);
            if (!is_temporary(name) && (before == writer_.before.end() || bytes != before->second)) ++changed;
        }
        if (changed != renamed) {
            problem(at, std::to_string(changed) + " files changed, " + std::to_string(renamed) + " were renamed");
        }
    }

    const Writer& writer_;
    Files after_;
    WriteEnumeration found_;
};

}  // namespace

const std::vector<WriteFault>& write_faults() {
    static const std::vector<WriteFault> all = {WriteFault::kInterrupt,   WriteFault::kTerminate,  WriteFault::kKill,
                                                WriteFault::kKillHalfWay, WriteFault::kFull,       WriteFault::kBroken,
                                                WriteFault::kShort,       WriteFault::kInterrupted};
    return all;
}

std::string to_string(WriteFault fault) {
    switch (fault) {
        case WriteFault::kInterrupt:
            return "SIGINT";
        case WriteFault::kTerminate:
            return "SIGTERM";
        case WriteFault::kKill:
            return "SIGKILL";
        case WriteFault::kKillHalfWay:
            return "SIGKILL after half of it";
        case WriteFault::kFull:
            return "ENOSPC";
        case WriteFault::kBroken:
            return "EIO";
        case WriteFault::kShort:
            return "a short write";
        case WriteFault::kInterrupted:
            return "EINTR";
    }
    return "?";
}

WriteEnumeration disturb_every_write(const Writer& writer, const std::vector<WriteFault>& faults) {
    return WritePoints(writer).run(faults);
}

}  // namespace gradguard::testing
