// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "kernels/cuda/sha256.h"

namespace gradguard::cuda {
namespace {

namespace fs = std::filesystem;

/// The first line of an entry. The number is of this form of entries.
std::string header_of(const std::string& key, std::string_view text) {
    return "gradguard cache 1, key " + key + ", text " + sha256_hex(text) + "\n";
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Why the folder cannot be used; makes it if need be. What others may write there is no cache of ours: its texts run.
std::string problem_of(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder.parent_path(), error);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
    struct stat status = {};
    if (::stat(folder.c_str(), &status) != 0) return std::strerror(errno);
    if (!S_ISDIR(status.st_mode)) return "it is no folder";
    if (status.st_uid != ::geteuid()) return "it belongs to another user";
    if ((status.st_mode & S_IWOTH) != 0) return "every user may write there";
    return "";
}

/// Writes all of it to a new file; the error's number, 0 for none.
int write_new(const std::string& path, const std::string& bytes) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    int error = 0;
    for (std::size_t written = 0; written < bytes.size() && error == 0;) {
        const ssize_t count = ::write(file, bytes.data() + written, bytes.size() - written);
        if (count < 0 && errno != EINTR) error = errno;
        if (count > 0) written += static_cast<std::size_t>(count);
    }
    if (::close(file) != 0 && error == 0) error = errno;
    return error;
}

}  // namespace

std::string CompileCache::usual_folder() {
    // The base directory specification: a relative path there is to be ignored.
    if (const std::string cache = variable("XDG_CACHE_HOME"); fs::path(cache).is_absolute())
        return cache + "/gradguard";
    const std::string home = variable("HOME");
    return home.empty() ? "" : home + "/.cache/gradguard";
}

CompileCache::CompileCache(std::string folder) : folder_(std::move(folder)) {
    if (folder_.empty()) return;
    const std::string reason = problem_of(folder_);
    if (reason.empty()) return;
    problem_ = "compiled kernels are not kept in " + folder_ + ": " + reason;
    folder_.clear();
}

std::string CompileCache::path_of(const std::string& key) const { return folder_ + "/" + key + ".cached"; }

std::optional<std::string> CompileCache::find(const std::string& key) const {
    if (folder_.empty()) return std::nullopt;
    std::ifstream file(path_of(key), std::ios::binary);
    std::string header;
    if (!std::getline(file, header)) return std::nullopt;
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (header + "\n" != header_of(key, text)) return std::nullopt;
    return text;
}

void CompileCache::store(const std::string& key, std::string_view text) {
    if (folder_.empty()) return;
    static std::atomic<unsigned> stored{0};
    const std::string part = path_of(key) + "." + std::to_string(::getpid()) + "." + std::to_string(stored++) + ".part";
    int error = write_new(part, header_of(key, text) + std::string(text));
    if (error == 0 && ::rename(part.c_str(), path_of(key).c_str()) != 0) error = errno;
    if (error == 0) return;
    ::unlink(part.c_str());
    problem_ = "compiled kernels are not kept in " + folder_ + ": " + std::strerror(error);
}

}  // namespace gradguard::cuda
