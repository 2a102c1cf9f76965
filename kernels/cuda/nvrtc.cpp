// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvrtc.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <system_error>

namespace gradguard::cuda {
namespace {

constexpr int kOldest = 12, kNewest = 13;

/// nvrtcProgram and nvrtcResult of nvrtc.h; 0 is success.
struct ProgramHandle;
using Program = ProgramHandle*;
using Result = int;

std::string without_end(std::string text) {
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
}

}  // namespace

struct Nvrtc::Functions {
    explicit Functions(const DynamicLibrary& library)
        : version(library.function<Result(int*, int*)>("nvrtcVersion")),
          error(library.function<const char*(Result)>("nvrtcGetErrorString")),
          create(
              library.function<Result(Program*, const char*, const char*, int, const char* const*, const char* const*)>(
                  "nvrtcCreateProgram")),
          destroy(library.function<Result(Program*)>("nvrtcDestroyProgram")),
          compile(library.function<Result(Program, int, const char* const*)>("nvrtcCompileProgram")),
          ptx_size(library.function<Result(Program, std::size_t*)>("nvrtcGetPTXSize")),
          ptx(library.function<Result(Program, char*)>("nvrtcGetPTX")),
          log_size(library.function<Result(Program, std::size_t*)>("nvrtcGetProgramLogSize")),
          log(library.function<Result(Program, char*)>("nvrtcGetProgramLog")) {}

    void check(Result result, const char* call) const {
        if (result != 0) throw CompileError(std::string(call) + ": " + error(result));
    }

    Result (*version)(int*, int*);
    const char* (*error)(Result);
    Result (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
    Result (*destroy)(Program*);
    Result (*compile)(Program, int, const char* const*);
    Result (*ptx_size)(Program, std::size_t*);
    Result (*ptx)(Program, char*);
    Result (*log_size)(Program, std::size_t*);
    Result (*log)(Program, char*);
};

std::shared_ptr<const Nvrtc> Nvrtc::load(const std::string& name) {
    try {
        const DynamicLibrary library = DynamicLibrary::open(name);
        auto functions = std::make_shared<const Functions>(library);
        CudaRelease release;
        if (const Result result = functions->version(&release.major, &release.minor); result != 0) {
            throw NvrtcUnavailable(name + ": nvrtcVersion: " + functions->error(result));
        }
        if (release.major < kOldest || release.major > kNewest) {
            throw NvrtcUnavailable(name + " is NVRTC " + release.text() + ", want version 12 or 13");
        }
        std::error_code error;
        const std::string loaded = library.path_of("nvrtcVersion");
        const std::filesystem::path real = std::filesystem::canonical(loaded, error);
        return std::shared_ptr<const Nvrtc>(new Nvrtc(error ? loaded : real.string(), release, std::move(functions)));
    } catch (const LibraryError& error) {
        throw NvrtcUnavailable(error.what());
    }
}

std::shared_ptr<const Nvrtc> Nvrtc::known(const std::string& path, CudaRelease release) {
    return std::shared_ptr<const Nvrtc>(new Nvrtc(path, release, nullptr));
}

std::string Nvrtc::identity_of(const std::string& path) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    const auto written = std::filesystem::last_write_time(path, error).time_since_epoch();
    return path + " " + std::to_string(bytes) + " " +
           std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(written).count());
}

const Nvrtc::Functions& Nvrtc::functions() const {
    const std::lock_guard lock(mutex_);
    if (functions_ != nullptr) return *functions_;
    try {
        const std::shared_ptr<const Nvrtc> loaded = load(path_);
        if (loaded->release() != release_) {
            throw CompileError(path_ + " is NVRTC " + loaded->release().text() + ", and was " + release_.text());
        }
        functions_ = loaded->functions_;
    } catch (const NvrtcUnavailable& error) {
        throw CompileError(error.what());
    }
    return *functions_;
}

std::string Nvrtc::compile(const ProgramSource& source, const std::vector<std::string>& options) const {
    std::vector<const char*> names, texts, flags;
    for (const auto& [name, text] : source.headers) {
        names.push_back(name.c_str());
        texts.push_back(text.c_str());
    }
    for (const std::string& option : options) flags.push_back(option.c_str());
    const Functions& nvrtc = functions();
    Program made = nullptr;
    nvrtc.check(nvrtc.create(&made, source.text.c_str(), source.name.c_str(), static_cast<int>(names.size()),
                             texts.data(), names.data()),
                "nvrtcCreateProgram");
    const auto destroy = [&nvrtc](Program program) { nvrtc.destroy(&program); };
    const std::unique_ptr<ProgramHandle, decltype(destroy)> program(made, destroy);
    const Result result = nvrtc.compile(made, static_cast<int>(flags.size()), flags.data());
    std::size_t size = 0;
    if (result != 0) {
        std::string log;
        if (nvrtc.log_size(made, &size) == 0) {
            log.resize(size);
            nvrtc.log(made, log.data());
        }
        throw CompileError("NVRTC " + release_.text() + " (" + path_ + ") does not compile " + source.name + ": " +
                           nvrtc.error(result) + "\n" + without_end(log));
    }
    nvrtc.check(nvrtc.ptx_size(made, &size), "nvrtcGetPTXSize");
    std::string ptx(size, '\0');
    nvrtc.check(nvrtc.ptx(made, ptx.data()), "nvrtcGetPTX");
    return without_end(std::move(ptx)) + "\n";
}

}  // namespace gradguard::cuda
