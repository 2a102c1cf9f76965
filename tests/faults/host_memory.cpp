// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/host_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace gradguard::testing::host_memory {
namespace {

constexpr std::uint64_t kNever = UINT64_MAX;
std::uint64_t until_failure = kNever;
std::uint64_t made = 0;
std::uint64_t freed = 0;
bool failed = false;

}  // namespace

void fail_at(std::uint64_t n) {
    failed = false;
    until_failure = n;
}

bool stop_failing() {
    until_failure = kNever;
    return failed;
}

std::uint64_t allocations() { return made; }
std::uint64_t live() { return made - freed; }

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
    if (until_failure != kNever && until_failure-- == 0) {
        until_failure = kNever;
        failed = true;
        throw std::bad_alloc();
    }
    // aligned_alloc wants a multiple of the alignment; malloc may give nothing for nothing.
    const std::size_t size = bytes == 0 ? 1 : bytes;
    void* const memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                             ? std::malloc(size)
                             : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    ++made;
    return memory;
}

void release(void* memory) {
    if (memory == nullptr) return;
    ++freed;
    std::free(memory);
}

}  // namespace
}  // namespace gradguard::testing::host_memory

using gradguard::testing::host_memory::allocate;
using gradguard::testing::host_memory::release;

// The array and nothrow forms of the standard library call these.
void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
