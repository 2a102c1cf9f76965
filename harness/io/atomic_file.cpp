// SPDX-License-Identifier: Apache-2.0
#include "harness/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "harness/io/file_error.h"

namespace gradguard::harness {
namespace {

constexpr int kTemporaryNames = 100;

/// The file that `path` means: a link is followed, even to a file that does not exist yet.
std::filesystem::path resolved(const std::string& path) {
    std::error_code error;
    std::filesystem::path target = path;
    if (std::filesystem::is_symlink(target, error)) {
        const std::filesystem::path followed = std::filesystem::weakly_canonical(target, error);
        if (!error) target = followed;
    }
    return target;
}

/// What a system call gives that a signal did not interrupt.
template <class Call>
auto uninterrupted(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

/// Whether the folder's entries are on disk as far as they can be brought there; else errno says why not. Some file
/// systems cannot flush a folder, and one that may be written but not read cannot be opened.
bool sync_folder(const std::string& folder) {
    const int descriptor = uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor < 0) return errno == EACCES;
    const bool flushed = uninterrupted([&] { return ::fsync(descriptor); }) == 0 || errno == EINVAL;
    const int why = errno;
    ::close(descriptor);
    errno = why;
    return flushed;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : shown_path_(path) {
    const std::filesystem::path target = resolved(path);
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(target, error);
    // A rename would replace a device or a pipe by a file.
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        throw FileError(path, "cannot write: it exists and is not a regular file");
    }
    if (!target.has_filename()) throw FileError(path, "cannot write: it names no file");
    path_ = target.string();
    const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
    std::string hidden(".");
    hidden += target.filename().string();
    const std::string stem = (folder / hidden).string() + "." + std::to_string(::getpid());
    for (int i = 0; i < kTemporaryNames && descriptor_ < 0; ++i) {
        temporary_ = stem + "." + std::to_string(i) + ".tmp";
        descriptor_ =
            uninterrupted([&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
        if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) fail("cannot write");
}

AtomicFile::~AtomicFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
    throw FileError(shown_path_, std::string(what) + ": " + std::strerror(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = uninterrupted([&] { return ::write(descriptor_, bytes.data(), bytes.size()); });
        if (written < 0) fail("cannot write");
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

void AtomicFile::commit() {
    flush();
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename the finished file");
    finish();
}

void AtomicFile::commit_new() {
    flush();
    // Unlike a rename, a link fails where something is already.
    if (::link(temporary_.c_str(), path_.c_str()) != 0) {
        if (errno == EEXIST)
            throw FileError(shown_path_, "cannot write: there is a file already, and it is not replaced");
        fail("cannot link the finished file");
    }
    ::unlink(temporary_.c_str());
    finish();
}

void AtomicFile::flush() {
    if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail("cannot flush to disk");
}

void AtomicFile::finish() {
    ::close(descriptor_);
    descriptor_ = -1;
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    if (!sync_folder(folder.empty() ? "." : folder)) fail("is written, but its folder cannot be flushed to disk");
}

}  // namespace gradguard::harness
