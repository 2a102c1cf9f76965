// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"

/// Runs programs that were compiled elsewhere (CUB, Triton, random ones) on the machine, under all observers.
namespace gradguard::programs {

using Words = std::vector<std::uint32_t>;

/// One argument of a kernel. Buffers are given and read back as 32-bit words.
struct Argument {
    enum class Kind : std::uint8_t { Scalar, Input, Output };
    Kind kind = Kind::Scalar;
    std::uint64_t scalar = 0;  ///< Its low bytes, as many as the parameter has.
    Words words;               ///< Input: marked read-only. Output: what is there before; its size is what matters.
    bool poisoned = false;     ///< Output: nobody writes it before the kernel does.
};

Argument scalar(std::uint32_t value);
Argument scalar(float value);
Argument input(Words words);
Argument output(std::size_t words);
Argument in_out(Words words);

struct Outcome {
    std::vector<Words> outputs;  ///< Of the Output arguments, in order. Empty after a fault.
    std::string findings;        ///< Of the machine and of all observers, one a line.
    std::vector<observers::Checked> checked;
    vgpu::Counters counters;
    std::vector<std::string> approximate;  ///< Approximate instructions of the kernel.
};

/// Whether instructions run that have an error bound instead of a result.
enum class Approximate : std::uint8_t { Refused, Allowed };

/// The module of a file, loaded once. Throws std::runtime_error for a file that cannot be read, vgpu::PtxError.
std::shared_ptr<const vgpu::Module> load(const std::string& path, Approximate approximate = Approximate::Refused);

/// Launches an entry; parameters beyond `arguments` are 0 (Triton appends addresses of scratch memory that it may not
/// need). Throws std::runtime_error for an unknown entry, vgpu::LaunchError for a launch that is refused.
Outcome launch(const vgpu::Module& module, const std::string& entry, const vgpu::LaunchConfig& config,
               const std::vector<Argument>& arguments, std::uint64_t seed,
               Approximate approximate = Approximate::Refused);

/// How many schedules a program runs under: `usual`, or GRADGUARD_SEEDS of the environment if that is more. Throws
/// std::invalid_argument if that is no number.
std::uint64_t seeds(std::uint64_t usual);

/// Launches so far.
std::uint64_t launches();

}  // namespace gradguard::programs
