// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"

/// Runs the checked-in programs of tests/observers/programs under observers.
namespace gradguard::observers::test {

/// What a run gave.
struct Run {
    std::vector<vgpu::Finding> findings;  ///< Of observers and machine, folded.
    std::vector<Checked> checked;
    bool faulted = false;

    std::string describe() const;
};

/// Buffers and shape of a launch; the kernel takes up to two buffers and an int, or three buffers.
struct Setup {
    std::string program;  ///< File name without .ptx.
    vgpu::Dim3 grid{1, 1, 1};
    vgpu::Dim3 block{256, 1, 1};
    std::uint32_t words_a = 256;  ///< Filled with 0, 1, 2, ... by the host.
    std::uint32_t words_b = 256;
    bool clear_b = true;        ///< Zeroed by the host; else nobody writes it.
    std::uint32_t words_c = 0;  ///< 0: no third buffer; zeroed.
    bool free_c = false;        ///< The host frees c before the launch.
    bool a_behind_b = false;    ///< One allocation: b, then a; a is marked as input.
    std::int32_t n = 0;
};

/// Runs entry `kernel` under the named observers with schedule `seed`.
Run run_program(const Setup& setup, const std::string& kernel, std::uint64_t seed, std::string_view observers = "all");

/// The source of programs/NAME.ptx: NAME.cu, or itself when it was written by hand.
std::string source_of(const std::string& program);
/// Lines of it that are marked "<- MARK".
std::vector<std::uint32_t> marked_lines(const std::string& program, const std::string& mark);

}  // namespace gradguard::observers::test
