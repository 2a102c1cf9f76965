// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

/// y = v . tanh(w x + b) + c, fitted to sin(3 x) on [-1, 1]: small enough to differentiate by hand.
class Network {
  public:
    static constexpr std::size_t kHidden = 24;
    /// w [24], b [24], v [24], c [1], in this order everywhere.
    static constexpr std::array<std::size_t, 4> kSizes = {kHidden, kHidden, kHidden, 1};
    using Parameters = std::array<std::vector<float>, 4>;

    static Parameters initial_parameters() {
        Parameters p;
        for (std::size_t i = 0; i < kSizes.size(); ++i) p[i].assign(kSizes[i], 0.0F);
        for (std::size_t h = 0; h < kHidden; ++h) {
            const auto turn = static_cast<float>(h);
            p[0][h] = 3.0F * std::cos(2.4F * turn);
            p[1][h] = 2.0F * std::sin(1.7F * turn);
            p[2][h] = 0.2F * std::cos(4.1F * turn);
        }
        return p;
    }

    /// Mean squared error over the 65 points, and its gradient in `gradient`.
    static float loss(const Parameters& p, Parameters& gradient) {
        constexpr int kPoints = 65;
        for (std::size_t i = 0; i < kSizes.size(); ++i) gradient[i].assign(kSizes[i], 0.0F);
        float total = 0.0F;
        for (int point = 0; point < kPoints; ++point) {
            const float x = static_cast<float>(point - kPoints / 2) / static_cast<float>(kPoints / 2);
            std::array<float, kHidden> hidden{};
            float y = p[3][0];
            for (std::size_t h = 0; h < kHidden; ++h) {
                hidden[h] = std::tanh(p[0][h] * x + p[1][h]);
                y += p[2][h] * hidden[h];
            }
            const float error = y - std::sin(3.0F * x);
            const float slope = 2.0F * error / kPoints;
            total += error * error / kPoints;
            for (std::size_t h = 0; h < kHidden; ++h) {
                const float inner = slope * p[2][h] * (1.0F - hidden[h] * hidden[h]);
                gradient[0][h] += inner * x;
                gradient[1][h] += inner;
                gradient[2][h] += slope * hidden[h];
            }
            gradient[3][0] += slope;
        }
        return total;
    }
};
