// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "harness/vgpu/machine.h"

namespace gradguard::vgpu::test {

/// A module of one entry, `k`, with the given parameter list and body.
std::string ptx_module(const std::string& params, const std::string& body, const std::string& globals = "");

/// Operands of one lane.
using Operands = std::array<std::uint64_t, 3>;

/// Runs `snippet` in a lane of its own for each element of `inputs` and returns what it leaves in its result register.
/// Operands: a, b, c as %a_d %b_d %c_d (.b64), _r (.b32), _f (.f32), _g (.f64), _h (.b16), _p (.pred: not 0).
/// Result, in one of: %d_d %d_r %d_f %d_g %d_h %d_p; the others stay 0. Runs on every vector level this processor has,
/// with full warps and with partial ones, and fails the test where they differ.
std::vector<std::uint64_t> evaluate(const std::string& snippet, const std::vector<Operands>& inputs,
                                    const MachineOptions& options = {});

inline std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// One lane of FP32 operands; the result as bits.
std::uint32_t evaluate_f32(const std::string& snippet, float a, float b = 0, float c = 0,
                           const MachineOptions& options = {});
std::uint64_t evaluate_one(const std::string& snippet, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);

/// The argument block of a kernel: each argument at its natural alignment.
class Arguments {
  public:
    template <class... T>
    explicit Arguments(T... values) {
        (add(values), ...);
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    template <class T>
    void add(T value) {
        const std::size_t at = (bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        bytes_.resize(at + sizeof(T));
        std::memcpy(bytes_.data() + at, &value, sizeof(T));
    }
    std::vector<std::byte> bytes_;
};

template <class T>
Address upload(Machine& machine, const std::vector<T>& values) {
    const Address address = machine.allocate(values.size() * sizeof(T));
    machine.write(address, values.data(), values.size() * sizeof(T));
    return address;
}
template <class T>
std::vector<T> download(const Machine& machine, Address address, std::size_t count) {
    std::vector<T> values(count);
    machine.read(address, values.data(), count * sizeof(T));
    return values;
}

/// Loads and runs entry `k` of `ptx`.
LaunchStats run(Machine& machine, const std::string& ptx, const LaunchConfig& config, const Arguments& arguments);

/// The finding that ends a launch; fails the test when it does not end with one.
Finding fault_of(Machine& machine, const std::string& ptx, const LaunchConfig& config, const Arguments& arguments);

}  // namespace gradguard::vgpu::test
