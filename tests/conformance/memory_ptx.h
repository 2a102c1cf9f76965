// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/model.h"

/// Micro-PTX for loads, stores and atomics. Each thread of the grid has a record of kRecordBytes at in and at out:
/// 0 to 47 its area of memory, at 48 the guard (.u32), from 64 four cells of 64 bits: operands or old registers. The
/// instruction accesses area + 16, with an offset of -16, 0 or 16. Afterwards the area and the registers are in `out`
/// (the area itself is in `in` where the instruction goes to global memory). Constants and parameters are the same for
/// all threads: the area of record 0.
namespace gradguard::conformance {

inline constexpr std::size_t kRecordBytes = 128;
inline constexpr std::size_t kAreaBytes = 48;
inline constexpr std::size_t kGuardAt = 48;
inline constexpr std::size_t kCellsAt = 64;
inline constexpr std::size_t kAreaBase = 16;
inline constexpr std::uint32_t kMemoryBlock = 128;

struct MemoryForm {
    std::string entry;
    int offset = 0;  ///< In bytes.
    bool guarded = false;
    bool wide = false;                   ///< 64-bit registers for narrower elements.
    bool shared_behind_generic = false;  ///< Generic addressing, of shared memory.
};

std::vector<MemoryForm> memory_forms_of(const InstructionModel& model);
std::string memory_ptx(const InstructionModel& model, const std::vector<MemoryForm>& forms);
/// Bits of the register of each element or operand.
int memory_register_bits(const InstructionModel& model, const MemoryForm& form);
/// Whether all threads access the area of record 0, read only.
bool is_uniform(const InstructionModel& model);
/// Whether the instruction changes the record at `in` rather than a copy.
bool is_in_place(const InstructionModel& model, const MemoryForm& form);

}  // namespace gradguard::conformance
