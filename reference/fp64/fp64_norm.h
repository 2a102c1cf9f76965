// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gradguard::reference {

/// Section 4's value of one stored gradient, widened to FP32: a multiplication by r, not a division, rounded once.
inline float unscaled(float raw, float r) { return raw * r; }

/// NaN or infinite before or after unscaling (contract section 4).
inline bool is_bad(float raw, float value) { return !(raw - raw == 0.0F) || !(value - value == 0.0F); }

/// sqrt(sum of squares) of finite FP32 values in FP64. No square of an FP32 value over- or underflows there, so the
/// relative error is at most about (n + 2) 2^-53. `values` must be finite.
double plain_norm(std::span<const float> values);

/// The same by a running (scale, sum of squares) pair in the manner of LAPACK's xLASSQ, in FP64.
double scaled_norm(std::span<const float> values);

/// What a scan of a whole tensor says (contract section 4), norm by the plain sum. Bad elements are counted, and enter
/// neither the norm nor the maximum.
struct Fp64Scan {
    double norm = 0.0;            ///< Of the good elements.
    float max_finite_abs = 0.0F;  ///< Exact.
    bool bad = false;
    std::optional<std::uint64_t> first_bad;  ///< Index of the first bad element.
    std::uint64_t elements = 0;
};

/// `raw`: [n] stored gradients widened to FP32; `r`: 1 / gradient_scale in FP32.
Fp64Scan scan_gradients(std::span<const float> raw, float r);

}  // namespace gradguard::reference
