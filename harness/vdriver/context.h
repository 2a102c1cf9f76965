// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/devices/kernel_counts.h"
#include "harness/observers/registry.h"
#include "harness/vdriver/driver_abi_wide.h"
#include "harness/vdriver/queue.h"
#include "harness/vgpu/machine.h"
#include "harness/vgpu/module.h"

namespace gradguard::vdriver {

struct Configuration;
class Record;

/// What an address of a context belongs to.
struct Memory {
    enum class Kind : std::uint8_t { kDevice, kPool, kGlobal, kPinned, kRegistered, kManaged };
    Kind kind = Kind::kDevice;
    cuda::CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
    std::byte* host = nullptr;  ///< kPinned, kRegistered, kManaged.
    unsigned flags = 0;
    std::uint64_t id = 0;
    cuda::CUmemoryPool pool = nullptr;
    bool freed_in_stream = false;  ///< cuMemFreeAsync() was called; it lives until the stream gets there.

    bool on_host() const { return host != nullptr; }
};
/// "device", "pool", ... for people.
const char* name_of(Memory::Kind kind);

class Context;

struct Event {
    std::shared_ptr<Context> context;
    unsigned flags = 0;
    bool recorded = false;
    Point point;                          ///< Of the last record.
    std::shared_ptr<double> nanoseconds;  ///< When that was reached; virtual time.
};

struct Module {
    std::shared_ptr<Context> context;
    std::shared_ptr<const vgpu::Module> program;
    std::map<std::string, cuda::CUfunction, std::less<>> functions;
    cuda::CUlibrary library = nullptr;  ///< It came from.
};

/// A kernel of a module in a context, and what the program set for it.
struct Function {
    std::shared_ptr<Context> context;
    cuda::CUmodule module = nullptr;
    std::shared_ptr<const vgpu::Module> program;
    const vgpu::EntryInfo* entry = nullptr;
    int max_dynamic_shared = 0;
    int carveout = -1;
    int cluster_policy = 0;
    bool non_portable_cluster = false;

    /// The launch that the functions from before cuLaunchKernel() put together piece by piece.
    struct {
        vgpu::Dim3 block;
        std::uint32_t shared_bytes = 0;
        std::vector<std::byte> arguments;
    } old_launch;
};

struct Library {
    std::shared_ptr<const vgpu::Module> program;
    std::map<std::string, cuda::CUkernel, std::less<>> kernels;
    std::map<const Context*, cuda::CUmodule> modules;
};

struct Kernel {
    cuda::CUlibrary library = nullptr;
    std::string name;
    std::optional<int> max_dynamic_shared;
};

struct Linker {
    std::vector<std::pair<std::string, std::string>> inputs;  ///< Name and PTX text.
    std::string output;                                       ///< Of cuLinkComplete(), PTX again.
    // Of cuLinkCreate(); the program keeps them until the end.
    unsigned option_count = 0;
    cuda::CUjit_option* options = nullptr;
    void** values = nullptr;
};

struct Pool {
    std::map<int, std::uint64_t> attributes;
    std::uint64_t used = 0;
    std::uint64_t used_high = 0;
    bool destroyed = false;  ///< Its memory outlives it.
};

/// A context: a machine of its own, so that the fault of a kernel ends with the context.
class Context {
  public:
    Context(const Configuration& configuration, unsigned flags, std::mutex& lock, Record& record);
    ~Context();

    /// Throws Failure with what stopped it.
    void check() const;
    /// Submits work; what it throws becomes the failure of the context.
    Point submit(const std::shared_ptr<Stream>& stream, std::function<void()> run);
    /// See Queues::submit_held().
    Point submit_held(const std::shared_ptr<Stream>& stream, std::function<void()> run);
    /// Waits for a stream, or for all; throws what stopped the context.
    void synchronize(const std::shared_ptr<Stream>& stream);
    void synchronize();
    /// Work of the default stream that the caller waits for: synchronous copies.
    void run_synchronously(std::function<void()> run);

    /// Memory of the machine; throws Failure OUT_OF_MEMORY.
    cuda::CUdeviceptr allocate(std::uint64_t bytes, Memory::Kind kind, cuda::CUmemoryPool pool = nullptr);
    /// Frees at once. No error when it is gone.
    void release(cuda::CUdeviceptr address);
    /// What holds `address`; null if nothing does.
    const Memory* find(cuda::CUdeviceptr address) const;
    Memory* find(cuda::CUdeviceptr address) {
        return const_cast<Memory*>(static_cast<const Context*>(this)->find(address));
    }
    void add_memory(const Memory& entry) { memory_[entry.address] = entry; }
    const std::map<cuda::CUdeviceptr, Memory>& memory() const { return memory_; }
    /// Address and size of a variable of a module; throws Failure NOT_FOUND.
    Memory variable(const vgpu::Module& program, std::string_view name);
    /// Its variables go.
    void unload(const vgpu::Module& program);

    /// Runs a kernel now; for queued work. `stats` of what was executed go to the record.
    void launch(const vgpu::Module& program, const vgpu::EntryInfo& entry, const vgpu::LaunchConfig& config,
                std::span<const std::byte> arguments);
    /// The failure of work, by what it threw.
    void note_failure(const std::exception& error);

    vgpu::Machine& machine() { return *machine_; }
    Queues& queues() { return queues_; }
    /// Hands findings and counts over to the record. Then the context is at its end.
    void finish();
    /// What was found so far, and not handed over.
    std::span<const vgpu::Finding> findings() const { return machine_->findings(); }
    std::vector<observers::Checked> checked() const { return observers_->checked(); }
    const harness::KernelCounts* counts() const { return counts_ ? &*counts_ : nullptr; }

    cuda::CUcontext handle = nullptr;
    std::uint64_t id = 0;
    unsigned flags = 0;
    unsigned users = 1;  ///< cuCtxAttach(), cuCtxDetach().
    int cache_config = 0;
    int shared_config = 0;
    std::map<int, std::uint64_t> limits;

  private:
    std::function<void()> guarded(std::function<void()> run);

    Record& record_;
    std::unique_ptr<vgpu::Machine> machine_;
    std::unique_ptr<observers::ObserverSet> observers_;  // after the machine: detached before that goes
    std::optional<harness::KernelCounts> counts_;
    Queues queues_;
    std::map<cuda::CUdeviceptr, Memory> memory_;
};

/// Memory of the host that all contexts can use: cuMemHostAlloc, cuMemHostRegister, managed memory.
class PinnedMemory {
  public:
    /// New memory at an address that kernels can use too, mapped into the contexts. Throws Failure OUT_OF_MEMORY.
    Memory allocate(std::uint64_t bytes, Memory::Kind kind, unsigned flags);
    /// Memory of the program. Throws Failure.
    void add_registered(void* host, std::uint64_t bytes, unsigned flags);
    /// By its first address. Throws Failure `otherwise`.
    void remove(const void* host, std::span<const Memory::Kind> kinds, cuda::CUresult otherwise);
    /// What holds the host address; null: pageable memory.
    const Memory* find(const void* host) const;
    /// Maps all into a new context.
    void map_into(Context& context) const;
    void clear();
    const std::map<std::uintptr_t, Memory>& all() const { return blocks_; }

  private:
    void* reserve(std::uint64_t bytes);

    std::map<std::uintptr_t, Memory> blocks_;
    std::uint64_t next_window_ = 0;
};

}  // namespace gradguard::vdriver
