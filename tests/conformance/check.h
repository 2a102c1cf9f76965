// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/vgpu/machine.h"
#include "tests/conformance/micro_ptx.h"

/// Runs micro-PTX on the virtual GPU and holds what it returns against the model.
namespace gradguard::conformance {

struct CheckOptions {
    std::size_t tuples = 20'000;  ///< For the plain form; the others run fewer.
    std::uint64_t seed = 1;
    bool flush_subnormals = false;
};

struct CheckResult {
    std::vector<std::string> failures;  ///< One line each, at most a screen full.
    std::uint64_t failed = 0;
    std::uint64_t compared = 0;  ///< Results that the manual fixes and that were compared.
    std::uint64_t open = 0;      ///< Results that it leaves open.

    bool passed() const { return failed == 0 && compared != 0; }
    std::string text() const;
};

inline constexpr std::size_t kMaxFailureLines = 12;

/// Adds a line while there is room.
void report(CheckResult& result, const std::string& line);

/// Shape::Lane and Shape::Warp, all forms, on all vector levels of this processor.
CheckResult check_registers(const InstructionModel& model, const CheckOptions& options);

/// Something else than the virtual GPU that runs micro-PTX: a GPU.
class MicroTarget {
  public:
    virtual ~MicroTarget() = default;
    virtual void load(const std::string& name, const std::string& ptx) = 0;
    /// Runs an entry of the module that was loaded last on blocks of 256 threads: `in` and `out` are its cells, one
    /// for each thread in each row of them; `out` goes in as it is.
    virtual void run(const std::string& entry, std::uint32_t blocks, const std::vector<Bits>& in,
                     std::vector<Bits>& out) = 0;
};
/// Shape::Lane and Shape::Warp in the forms of the checked-in micro-PTX.
CheckResult check_registers_on(MicroTarget& target, const InstructionModel& model, const CheckOptions& options);

/// Shape::Load, Store and Atomic.
CheckResult check_memory(const InstructionModel& model, const CheckOptions& options);
/// Shape::Effect.
CheckResult check_program(const InstructionModel& model, const CheckOptions& options);

CheckResult check(const InstructionModel& model, const CheckOptions& options);

/// The argument block of the entries that take addresses and sizes of 64 bits only.
std::vector<std::byte> arguments(std::initializer_list<std::uint64_t> values);

}  // namespace gradguard::conformance
