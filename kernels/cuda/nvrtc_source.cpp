// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvrtc_source.h"

#include <mutex>
#include <utility>

#include "kernels/cuda/device_sources.h"
#include "kernels/cuda/nvrtc_search.h"
#include "kernels/cuda/sha256.h"
#include "reference/contract/error.h"

namespace gradguard::cuda {
namespace {

std::string key_of(const ProgramSource& source, const std::vector<std::string>& flags, const Nvrtc& nvrtc) {
    Sha256 key;
    key.add_field(nvrtc.release().text()).add_field(nvrtc.identity());
    for (const std::string& flag : flags) key.add_field(flag);
    key.add_field(source.name).add_field(source.text);
    for (const auto& [name, text] : source.headers) key.add_field(name).add_field(text);
    return key.hex();
}

/// Compiles modules, or takes them from the cache.
class Compiler {
  public:
    explicit Compiler(const NvrtcOptions& options)
        : cache_(options.cache_folder ? *options.cache_folder : CompileCache::usual_folder()),
          nvrtc_(find_nvrtc(options.library, options.newest, &cache_)),
          flags_(nvrtc_flags(options.contracted, options.architecture)),
          sources_(options.sources ? options.sources : device_source),
          note_(options.note) {}

    CudaRelease release() const { return nvrtc_->release(); }

    std::string ptx(std::string_view module) {
        const std::lock_guard lock(mutex_);
        const ProgramSource source = sources_(module);
        const std::string key = key_of(source, flags_, *nvrtc_);
        if (std::optional<std::string> known = cache_.find(key)) return *std::move(known);
        std::string compiled = compile(source);
        cache_.store(key, compiled);
        if (note_ && !cache_.problem().empty()) std::exchange(note_, nullptr)(cache_.problem());
        return compiled;
    }

  private:
    std::string compile(const ProgramSource& source) const {
        try {
            return nvrtc_->compile(source, flags_);
        } catch (const CompileError& error) {
            throw Error(ErrorKind::kDeviceFailure, {std::nullopt, "nvrtcCompileProgram"}, error.what());
        }
    }

    std::mutex mutex_;
    CompileCache cache_;
    std::shared_ptr<const Nvrtc> nvrtc_;
    std::vector<std::string> flags_;
    std::function<ProgramSource(std::string_view)> sources_;
    std::function<void(const std::string&)> note_;
};

}  // namespace

std::vector<std::string> nvrtc_flags(bool contracted, const std::string& architecture) {
    return {
        "-arch=" + architecture, "-std=c++20",     "-lineinfo", contracted ? "-fmad=true" : "-fmad=false", "-ftz=false",
        "-prec-div=true",        "-prec-sqrt=true"};
}

KernelSource nvrtc_source(const NvrtcOptions& options) {
    auto compiler = std::make_shared<Compiler>(options);
    const std::string name =
        std::string(options.contracted ? "fmad" : "nofmad") + ", NVRTC " + compiler->release().text();
    return {name, [compiler](std::string_view module) { return compiler->ptx(module); }};
}

}  // namespace gradguard::cuda
