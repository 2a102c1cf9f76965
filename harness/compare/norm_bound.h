// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "reference/model/gradient_view.h"

namespace gradguard::harness {

/// What the contract's tree does to one tensor's sum of squares (BOUNDS.md, "Norm"), over its good elements.
struct TreeBound {
    double sum = 0.0;    ///< The real sum, off by at most 2^-50 of it.
    double error = 0.0;  ///< |scale^2 * sumsq - real sum| is at most this.
};

/// A node of the tree: the scale that it carries exactly, the real sum, and how far scale^2 * sumsq may be from it.
struct BoundNode {
    float scale = 0.0F;
    double sum = 0.0;
    double error = 0.0;
};

/// What merging two nodes may do to the sum (BOUNDS.md, "Norm"). A value enters as {|value|, value^2, 0}.
inline BoundNode merge_bounds(const BoundNode& a, const BoundNode& b) {
    constexpr double kUnit = 0x1p-24;
    // Four roundings: of q, of q * q (twice q's), and of the product with sumsq.
    constexpr double kRescaled = (1.0 + kUnit) * (1.0 + kUnit) * (1.0 + kUnit) * (1.0 + kUnit) - 1.0;
    // What FP64 does to the numbers of the bound itself, over any tree of at most 2^32 elements, and q * q * sumsq
    // below the normal range.
    constexpr double kOwn = 0x1p-50;
    // Without branches, as a loop over lanes wants it; a pair of scale 0 leaves the other alone.
    const bool a_is_larger = a.scale >= b.scale;
    const double small_sum = a_is_larger ? b.sum : a.sum;
    const double small_error = a_is_larger ? b.error : a.error;
    const double big_error = a_is_larger ? a.error : b.error;
    const double sum = a.sum + b.sum;
    const double rescaled = a.scale == b.scale ? 0.0 : (small_sum + small_error) * kRescaled;
    const double error = (big_error + small_error + rescaled) * (1.0 + kUnit) + (kUnit + kOwn) * sum;
    const bool nothing_added = small_sum == 0.0;
    return {a_is_larger ? a.scale : b.scale, sum, nothing_added ? big_error : error};
}

/// The bound evaluated along the tree for the inputs at hand. `r`: 1 / gradient_scale in FP32.
TreeBound tree_bound(const reference::GradientView& view, float r, std::uint32_t block_limit = 1024);

/// Bound on |total_norm - exact norm| of a group without bad elements, of the tensors' bounds in input order, with the
/// host's FP64 combination (contract section 4).
double norm_error_bound(std::span<const TreeBound> tensors);

/// The closed form for documentation: relative error of one tensor's sumsq, gamma_k with k = 5 D + 4.
/// `elements` > 0. +inf where k * 2^-24 >= 1.
double closed_form_bound(std::uint64_t elements, std::uint32_t block_limit = 1024);

/// Bound on |total_norm - exact| of a group without bad elements for a norm formed in FP32, scaled against over- and
/// underflow, in whatever order over `elements` in `tensors` tensors, and rounded to FP32 or not (BOUNDS.md, "Norm in
/// any order"). `flushes`: squares and inputs below the normal range may have been dropped. `exact`: the exact norm.
double any_order_bound(double exact, std::uint64_t elements, std::uint64_t tensors, float r, bool flushes);

}  // namespace gradguard::harness
