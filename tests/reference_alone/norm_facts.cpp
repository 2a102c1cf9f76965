// SPDX-License-Identifier: Apache-2.0
// Contract section 4: the FP64 norm, plain and scaled, and the scan of a tensor.
#include <cmath>
#include <vector>

#include "reference/fp64/coefficients.h"
#include "reference/fp64/fp64_norm.h"
#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

using reference::plain_norm;
using reference::scaled_norm;
using reference::scan_gradients;

/// Both norms of `values` are `norm` to the last bit.
bool both_are(const std::vector<float>& values, double norm) {
    return bits(plain_norm(values)) == bits(norm) && bits(scaled_norm(values)) == bits(norm);
}

void closed_forms() {
    GRADGUARD_CHECK(both_are({}, 0.0));
    GRADGUARD_CHECK(both_are({0.0F, -0.0F}, 0.0));
    GRADGUARD_CHECK(both_are({0.0F, 1.0F}, 1.0));
    GRADGUARD_CHECK(both_are({3.0F, -4.0F}, 5.0));
    GRADGUARD_CHECK(both_are({-3.0F}, 3.0));
    GRADGUARD_CHECK(both_are(std::vector<float>(1 << 10, 0.5F), 16.0));
    GRADGUARD_CHECK(both_are(std::vector<float>(100, 300.0F), 3000.0));
}

void range() {
    GRADGUARD_CHECK(both_are({kLeast}, 0x1p-149));
    GRADGUARD_CHECK(both_are({3 * kLeast, 4 * kLeast}, 5 * 0x1p-149));
    GRADGUARD_CHECK(both_are({0x1p-126F, 0.0F}, 0x1p-126));
    GRADGUARD_CHECK(both_are({0x1p127F, 0x1p127F, 0x1p127F, 0x1p127F}, 0x1p128));
    GRADGUARD_CHECK(both_are({65504.0F, 65504.0F, 65504.0F, 65504.0F}, 131008.0));
    GRADGUARD_CHECK(both_are({kMax}, static_cast<double>(kMax)));
    GRADGUARD_CHECK(both_are({1e-20F}, static_cast<double>(1e-20F)));
    // The small ones are below half an ulp of the sum of squares.
    GRADGUARD_CHECK(bits(plain_norm(std::vector<float>{1e20F, 1.0F, 1.0F})) == bits(static_cast<double>(1e20F)));
    // A single FP32 accumulator stops at 2^24.
    GRADGUARD_CHECK(both_are(std::vector<float>((1 << 24) + (1 << 22), 1.0F), 0x1.1e3779b97f4a8p12));
}

void agreement() {
    std::vector<float> values;
    float value = 1e-30F;
    for (int i = 0; i < 2000; ++i) {
        values.push_back((i % 3 == 0 ? -1.0F : 1.0F) * value);
        value *= 1.07F;
    }
    // Each does at most 4 roundings of 2^-53 for an element and a few at the end; the root halves them.
    const double bound = (4.0 * static_cast<double>(values.size()) + 8.0) * 0x1p-53;
    const double plain = plain_norm(values);
    GRADGUARD_CHECK(plain > 1e28 && std::isfinite(plain));
    GRADGUARD_CHECK(std::fabs(scaled_norm(values) - plain) <= bound * plain);
}

void bad_elements() {
    const std::vector<float> raw = {3.0F, kInfinity, -4.0F, kNaN, 0.0F, -kInfinity};
    const auto scan = scan_gradients(raw, 1.0F);
    GRADGUARD_CHECK(scan.bad && scan.first_bad == 1U);
    GRADGUARD_CHECK(scan.norm == 5.0 && scan.max_finite_abs == 4.0F && scan.elements == 6);
    const auto good = scan_gradients(std::vector<float>{3.0F, -4.0F}, 1.0F);
    GRADGUARD_CHECK(!good.bad && !good.first_bad && good.norm == 5.0);
    const auto nothing = scan_gradients({}, 1.0F);
    GRADGUARD_CHECK(!nothing.bad && nothing.norm == 0.0 && nothing.max_finite_abs == 0.0F && nothing.elements == 0);
    for (std::size_t at : {0, 255, 256, 1023, 1024}) {
        std::vector<float> values(1025, 1.0F);
        values[at] = kNaN;
        const auto one_bad = scan_gradients(values, 1.0F);
        GRADGUARD_CHECK(one_bad.bad && one_bad.first_bad == at && one_bad.norm == 32.0 && one_bad.elements == 1025);
    }
}

void overflow_on_unscaling() {
    const auto bad = [](float raw, float scale) {
        return scan_gradients(std::vector<float>{raw}, reference::reciprocal_scale(scale)).bad;
    };
    GRADGUARD_CHECK(bad(3e38F, 0.5F));
    GRADGUARD_CHECK(!bad(3e38F, 1.0F));
    GRADGUARD_CHECK(bad(65504.0F, 0x1p-113F));
    GRADGUARD_CHECK(!bad(65504.0F, 0x1p-112F));
    GRADGUARD_CHECK(bits(scan_gradients(std::vector<float>{65504.0F}, 0x1p112F).norm) == bits(65504.0 * 0x1p112));
    const auto vanished = scan_gradients(std::vector<float>{0x1p-126F}, 0x1p-30F);
    GRADGUARD_CHECK(!vanished.bad && vanished.norm == 0.0 && vanished.max_finite_abs == 0.0F);
}

void reciprocal_not_division() {
    const auto greatest = [](float raw, float scale) {
        return bits(scan_gradients(std::vector<float>{raw}, reference::reciprocal_scale(scale)).max_finite_abs);
    };
    GRADGUARD_CHECK(greatest(5.0F, 3.0F) == 0x3FD55556U);
    GRADGUARD_CHECK(greatest(9.0F, 10.0F) == 0x3F666667U);
}

constexpr Fact kFacts[] = {
    {"both norms give closed forms to the last bit", closed_forms},
    {"both norms span FP32's range, subnormals included, and beyond", range},
    {"the plain and the scaled norm agree within their roundings", agreement},
    {"a bad element is counted, and enters neither norm nor maximum", bad_elements},
    {"a finite value that overflows on unscaling is bad", overflow_on_unscaling},
    {"unscaling multiplies by the reciprocal: 0x3FD55556", reciprocal_not_division},
};

}  // namespace

std::span<const Fact> norm_facts() { return kFacts; }

}  // namespace gradguard::reference_alone
