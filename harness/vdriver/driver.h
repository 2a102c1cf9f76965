// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/vdriver/configuration.h"
#include "harness/vdriver/context.h"
#include "harness/vdriver/graph.h"
#include "harness/vdriver/record.h"

namespace gradguard::vdriver {

/// What a driver call ends with when it cannot do what it was asked.
class Failure : public std::runtime_error {
  public:
    explicit Failure(cuda::CUresult result, const std::string& words = "") : std::runtime_error(words), code(result) {}
    cuda::CUresult code;
};

[[noreturn]] void fail(cuda::CUresult code);
/// Most refusals.
inline void require(bool condition, cuda::CUresult code = cuda::CUDA_ERROR_INVALID_VALUE) {
    if (!condition) fail(code);
}

/// Objects by the handles that programs hold. Handles are numbers that are never used again, so that a stale one is
/// known as such; 0 to 2 mean something else to the driver.
template <class Handle, class Object>
class Handles {
  public:
    Handle add(std::shared_ptr<Object> object) {
        const Handle handle = reinterpret_cast<Handle>(next());
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    std::shared_ptr<Object> find(Handle handle) const {
        const auto it = objects_.find(handle);
        return it == objects_.end() ? nullptr : it->second;
    }
    /// Throws Failure.
    std::shared_ptr<Object> get(Handle handle, cuda::CUresult otherwise = cuda::CUDA_ERROR_INVALID_HANDLE) const {
        std::shared_ptr<Object> object = find(handle);
        require(object != nullptr, otherwise);
        return object;
    }
    bool erase(Handle handle) { return objects_.erase(handle) != 0; }
    template <class Predicate>
    void erase_if(Predicate&& gone) {
        std::erase_if(objects_, [&](const auto& entry) { return gone(*entry.second); });
    }
    void clear() { objects_.clear(); }
    std::size_t size() const { return objects_.size(); }
    auto begin() const { return objects_.begin(); }
    auto end() const { return objects_.end(); }

  private:
    static std::uintptr_t next();
    std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};
/// The numbers behind all handles.
std::uintptr_t next_handle();
template <class Handle, class Object>
std::uintptr_t Handles<Handle, Object>::next() {
    return next_handle();
}

/// A stream as a handle names it, with its context.
struct StreamOf {
    std::shared_ptr<Context> context;
    std::shared_ptr<Stream> stream;
};

/// Everything behind the API, of one process. Never destroyed: threads and exit handlers of the program may still call.
class Driver {
  public:
    static Driver& get();

    std::mutex lock;

    // Life: configuration, cuInit(), reset.
    bool initialized = false;
    bool configured = false;
    Configuration configuration;
    /// Configuration of the environment, unless there is one. Throws Failure when what is there is none.
    void configure();
    void initialize();
    void reset();

    // The plan of gradguard_vdriver_fail_call().
    std::uint64_t calls = 0;
    std::uint64_t fail_at = UINT64_MAX;
    cuda::CUresult fail_with = cuda::CUDA_SUCCESS;

    Handles<cuda::CUcontext, Context> contexts;
    Handles<cuda::CUstream, StreamOf> streams;
    Handles<cuda::CUevent, Event> events;
    Handles<cuda::CUmodule, Module> modules;
    Handles<cuda::CUfunction, Function> functions;
    Handles<cuda::CUlibrary, Library> libraries;
    Handles<cuda::CUkernel, Kernel> kernels;
    Handles<cuda::CUlinkState, Linker> linkers;
    Handles<cuda::CUmemoryPool, Pool> pools;
    Handles<cuda::CUgraph, Graph> graphs;
    Handles<cuda::CUgraphExec, GraphExec> graph_execs;
    cuda::CUmemoryPool default_pool = nullptr;
    cuda::CUmemoryPool current_pool = nullptr;
    PinnedMemory pinned;
    Record record;

    std::shared_ptr<Context> primary;
    std::uint64_t primary_users = 0;
    unsigned primary_flags = 0;

    std::shared_ptr<Context> create_context(unsigned flags);
    void destroy_context(const std::shared_ptr<Context>& context);

    /// The calling thread's; throws INVALID_CONTEXT without one.
    std::shared_ptr<Context> current() const;
    std::shared_ptr<Context> context(cuda::CUcontext handle) const {
        return contexts.get(handle, cuda::CUDA_ERROR_INVALID_CONTEXT);
    }
    /// 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are of the current context. Throws INVALID_HANDLE, INVALID_CONTEXT,
    /// and what stopped the context.
    StreamOf stream(cuda::CUstream handle) const;

    /// The context whose memory holds `address`: the current one, or whichever else. Null when none does.
    std::shared_ptr<Context> owner_of(cuda::CUdeviceptr address) const;

  private:
    Driver();
};

/// Contexts that the calling thread has pushed, the current one last; null: none.
std::vector<cuda::CUcontext>& context_stack();

}  // namespace gradguard::vdriver
