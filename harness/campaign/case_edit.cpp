// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/case_edit.h"

#include <cstring>
#include <utility>

#include "reference/exact/float_bits.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
std::uint32_t ArrayBits::get(std::uint64_t i) const {
    std::uint32_t bits = 0;  // little-endian, as every machine this is built for
    std::memcpy(&bits, bytes_.data() + i * element_bytes(dtype_), element_bytes(dtype_));
    return bits;
}

void ArrayBits::set(std::uint64_t i, std::uint32_t bits) {
    std::memcpy(bytes_.data() + i * element_bytes(dtype_), &bits, element_bytes(dtype_));
}

float ArrayBits::value(std::uint64_t i) const { return reference::raw_value({dtype_, bytes_.data(), size()}, i); }

bool ArrayBits::is_finite(std::uint64_t i) const {
    const std::uint32_t infinity = format_of(dtype_).infinity();
    return (get(i) & infinity) != infinity;
}

bool ArrayBits::scale(std::uint64_t i, int k) {
    const FloatFormat& format = format_of(dtype_);
    const std::uint32_t bits = get(i);
    const std::uint32_t exponent = (bits & format.infinity()) >> format.mantissa_bits;
    const std::uint32_t infinite = format.infinity() >> format.mantissa_bits;
    if (is_zero(i) || exponent == infinite) return true;
    const std::int64_t scaled = static_cast<std::int64_t>(exponent) + k;
    if (exponent == 0 || scaled < 1 || scaled >= static_cast<std::int64_t>(infinite)) return false;
    set(i, (bits & ~format.infinity()) | static_cast<std::uint32_t>(scaled) << format.mantissa_bits);
    return true;
}

void for_each_gradient(Case& c, const std::function<void(ArrayBits, std::size_t, float)>& body) {
    for (std::size_t i = 0; i < c.entries.size(); ++i) {
        CaseTensor& first = c.entries[i].gradients;
        body(ArrayBits(first.layout.dtype, first.values), i, c.control.gradient_scale);
        for (LaterStep& later : c.later) {
            body(ArrayBits(first.layout.dtype, later.gradients[i]), i, later.control.gradient_scale);
        }
    }
}

reference::GradientView view_of(const CaseTensor& tensor) {
    return {tensor.layout.dtype, tensor.values.data(), tensor.values.size() / element_bytes(tensor.layout.dtype)};
}

std::vector<reference::GradientView> gradient_views(const Case& c) {
    std::vector<reference::GradientView> views;
    for (const CaseEntry& entry : c.entries) views.push_back(view_of(entry.gradients));
    return views;
}

bool all_finite(const Case& c) {
    const float r = reference::reciprocal_scale(c.control.gradient_scale);
    for (const reference::GradientView& view : gradient_views(c)) {
        if (reference::first_bad(view, r)) return false;
    }
    return true;
}

CaseTensor dense_tensor(DType dtype, std::vector<std::byte> values) {
    CaseTensor tensor;
    tensor.layout.dtype = dtype;
    tensor.layout.shape = {values.size() / element_bytes(dtype)};
    tensor.layout.strides = {1};
    tensor.storage_bytes = values.size();
    tensor.values = std::move(values);
    return tensor;
}

Case scan_of(const Case& c) {
    Case scan = c;
    scan.operation = Operation::kStatistics;
    scan.control.skip_update = false;
    scan.later.clear();
    return scan;
}

}  // namespace gradguard::harness
