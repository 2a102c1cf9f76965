// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradguard::vgpu {

/// An address as kernels see it. Global memory: allocation number and offset (see memory.h), never a host address.
using Address = std::uint64_t;

struct Dim3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;

    std::uint64_t count() const { return std::uint64_t{x} * y * z; }
    bool operator==(const Dim3&) const = default;
};

/// State spaces of PTX. `Generic` is how an instruction may address; events and findings name the space it resolved to.
enum class Space : std::uint8_t { Generic, Global, Shared, Local, Constant, Param };

enum class AccessKind : std::uint8_t { Load, Store, Atomic };

enum class FindingKind : std::uint8_t {
    OutOfBounds,
    Misaligned,
    UseAfterFree,
    NoSuchAllocation,  ///< The address belongs to nothing that was ever allocated (null pointers among them).
    WriteToConstant,
    DivergentBarrier,       ///< Threads of one warp filled one aligned barrier from different instructions.
    Deadlock,               ///< Every live thread waits for something that cannot happen any more.
    NoProgress,             ///< The instruction budget of the launch is used up.
    UninitializedRead,      ///< Bytes were read that nobody wrote (local memory: and what was read was used).
    Race,                   ///< Two threads of different warps, nothing orders them, and one of them writes.
    WarpRace,               ///< The same between lanes of one warp, with no __syncwarp() between.
    WriteConflict,          ///< Lanes of one warp wrote different values to one place with one instruction.
    SameValueWrite,         ///< Unordered writes of one value to one place. Harmless; reported on request only.
    WriteToInput,           ///< A buffer that was marked read-only for the launch was written.
    Leak,                   ///< Allocated and never freed.
    UninitializedRegister,  ///< A value that comes from a register that nobody wrote was used.
    BarrierMismatch,        ///< One barrier was used with different thread counts, or from several places in one phase.
};

const char* name_of(FindingKind kind);
const char* name_of(Space space);

/// Where in the program something happened.
struct Place {
    std::string kernel;
    std::string ptx_file;
    std::uint32_t ptx_line = 0;
    std::string instruction;        ///< Text of the PTX instruction.
    std::string source_file;        ///< From `.loc`; empty when the module carries none.
    std::uint32_t source_line = 0;  ///< 0 when the module carries none.
    /// Where the code was inlined from, when that is another file (a header); source_file and source_line are then the
    /// call in the file of the kernel. Empty and 0 otherwise.
    std::string inlined_file;
    std::uint32_t inlined_line = 0;

    bool operator==(const Place&) const = default;
};

/// What an observer, or the machine itself, has against a kernel. Plain data; equal findings are folded and counted.
struct Finding {
    FindingKind kind = FindingKind::OutOfBounds;
    Place place;
    Dim3 block{0, 0, 0};
    Dim3 thread{0, 0, 0};
    std::uint64_t count = 1;  ///< How often it was seen; block and thread are those of the first time.

    // Memory findings only.
    Space space = Space::Global;
    AccessKind access = AccessKind::Load;
    std::uint32_t access_bytes = 0;
    Address address = 0;
    Address allocation = 0;              ///< First address of the allocation that `address` belongs to, 0 if none.
    std::uint64_t allocation_bytes = 0;  ///< Its size.
    /// The other party, where there is one: it came first. UninitializedRead of local memory: where what was read is
    /// used.
    std::optional<Place> other;
    Dim3 other_block{0, 0, 0};
    Dim3 other_thread{0, 0, 0};
    AccessKind other_access = AccessKind::Load;

    std::string register_name;  ///< UninitializedRegister: the one that nobody wrote; empty if it has no name.

    std::string detail;  ///< What only words can say, for instance the places where threads wait.

    /// One line for people.
    std::string message() const;
};

}  // namespace gradguard::vgpu
