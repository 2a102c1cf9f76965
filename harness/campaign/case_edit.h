// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "harness/case/case.h"
#include "harness/generators/float_format.h"
#include "reference/model/gradient_view.h"

namespace gradguard::harness {

/// Small changes to cases, for relations that make a second case from a first. Tensors must be readable.

/// Bit patterns of an array of one dtype, in place.
class ArrayBits {
  public:
    ArrayBits(DType dtype, std::vector<std::byte>& bytes) : dtype_(dtype), bytes_(bytes) {}

    DType dtype() const { return dtype_; }
    std::uint64_t size() const { return bytes_.size() / element_bytes(dtype_); }
    std::uint32_t get(std::uint64_t i) const;
    void set(std::uint64_t i, std::uint32_t bits);
    /// Widened to FP32; exact.
    float value(std::uint64_t i) const;

    void flip_sign(std::uint64_t i) { set(i, get(i) ^ format_of(dtype_).sign()); }
    bool is_zero(std::uint64_t i) const { return (get(i) & (format_of(dtype_).sign() - 1)) == 0; }
    bool is_finite(std::uint64_t i) const;
    /// Multiplies element i by 2^k where both are normal numbers of the dtype, or zero, or not finite (which stays);
    /// false, and no change, elsewhere.
    bool scale(std::uint64_t i, int k);

  private:
    DType dtype_;
    std::vector<std::byte>& bytes_;
};

/// Calls `body(array, entry, gradient_scale)` for the gradients of every step.
void for_each_gradient(Case& c, const std::function<void(ArrayBits, std::size_t entry, float gradient_scale)>& body);

/// A tensor's values as the oracle sees them.
reference::GradientView view_of(const CaseTensor& tensor);
/// The gradients of all entries of the first step.
std::vector<reference::GradientView> gradient_views(const Case& c);
bool all_finite(const Case& c);

/// [n] of `dtype` at the start of storage of its own.
CaseTensor dense_tensor(DType dtype, std::vector<std::byte> values);

/// The case of the first step alone, as a scan.
Case scan_of(const Case& c);

}  // namespace gradguard::harness
