// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/dynamic_library.h"

namespace gradguard::cuda {

/// A release of CUDA: of a compiler, or the newest whose PTX a driver takes.
struct CudaRelease {
    int major = 0;
    int minor = 0;

    friend auto operator<=>(const CudaRelease&, const CudaRelease&) = default;
    std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
    /// Of what cuDriverGetVersion gives: 12080 for 12.8.
    static CudaRelease of_driver(int version) { return {version / 1000, version % 1000 / 10}; }
};

/// There is no NVRTC that can be used; the message says what was tried.
class NvrtcUnavailable : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A source does not compile, or an option is none; the message has the compiler's log.
class CompileError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What is compiled, all of it text in memory.
struct ProgramSource {
    std::string name;  ///< As messages and line information have it.
    std::string text;
    std::vector<std::pair<std::string, std::string>> headers = {};  ///< Name as it stands in #include, text.
};

/// CUDA's run-time compiler, a library that is loaded at run time. Good for several threads at once.
class Nvrtc {
  public:
    Nvrtc(const Nvrtc&) = delete;
    Nvrtc& operator=(const Nvrtc&) = delete;

    /// `library` is a path, or a file name for the loader. Throws NvrtcUnavailable when it does not load, lacks a
    /// function, or is not of version 12 or 13 (older ones have no C++20).
    static std::shared_ptr<const Nvrtc> load(const std::string& library);
    /// The file of this path, which was loaded before as it is now (identity_of()) and was of this release. It is
    /// loaded when it compiles something, which a start with all kernels in the cache does without.
    static std::shared_ptr<const Nvrtc> known(const std::string& path, CudaRelease release);
    /// Changes whenever the file may have: its path, size and time of modification.
    static std::string identity_of(const std::string& path);

    CudaRelease release() const { return release_; }
    const std::string& path() const { return path_; }  ///< Of the file that was loaded.
    std::string identity() const { return identity_of(path_); }

    /// The PTX. Options as NVRTC takes them. Throws CompileError.
    std::string compile(const ProgramSource& source, const std::vector<std::string>& options) const;

  private:
    struct Functions;
    Nvrtc(std::string path, CudaRelease release, std::shared_ptr<const Functions> functions)
        : path_(std::move(path)), release_(release), functions_(std::move(functions)) {}
    const Functions& functions() const;

    std::string path_;
    CudaRelease release_;
    mutable std::mutex mutex_;
    mutable std::shared_ptr<const Functions> functions_;  ///< Null until it is loaded.
};

}  // namespace gradguard::cuda
