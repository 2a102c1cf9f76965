// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/fp64_norm.h"

#include <cmath>

namespace gradguard::reference {

double plain_norm(std::span<const float> values) {
    double sum = 0.0;
    for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(sum);
}

double scaled_norm(std::span<const float> values) {
    double scale = 0.0;
    double sumsq = 1.0;
    for (const float value : values) {
        const double magnitude = std::fabs(static_cast<double>(value));
        if (magnitude == 0.0) continue;
        if (magnitude > scale) {
            const double ratio = scale / magnitude;
            sumsq = 1.0 + sumsq * (ratio * ratio);
            scale = magnitude;
        } else {
            const double ratio = magnitude / scale;
            sumsq += ratio * ratio;
        }
    }
    return scale * std::sqrt(sumsq);
}

Fp64Scan scan_gradients(std::span<const float> raw, float r) {
    Fp64Scan scan;
    double sum = 0.0;
    for (const float stored : raw) {
        const float value = unscaled(stored, r);
        if (is_bad(stored, value)) {
            if (!scan.bad) scan.first_bad = scan.elements;
            scan.bad = true;
        } else {
            sum += static_cast<double>(value) * static_cast<double>(value);
            scan.max_finite_abs = std::fmax(scan.max_finite_abs, std::fabs(value));
        }
        ++scan.elements;
    }
    scan.norm = std::sqrt(sum);
    return scan;
}

}  // namespace gradguard::reference
