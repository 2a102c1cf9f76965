// SPDX-License-Identifier: Apache-2.0
#include "bench/native_loops.h"

#include <cmath>
#include <cstring>

namespace gradguard::bench {
namespace {

constexpr std::uint32_t kThreads = 256;

struct Triple {
    float scale = 0;
    float sumsq = 0;
    float flag = 0;
};

void merge(Triple& own, float scale, float sumsq) {
    const bool own_is_larger = own.scale >= scale;
    const float large = own_is_larger ? own.scale : scale;
    const float small = own_is_larger ? scale : own.scale;
    float sum = own_is_larger ? own.sumsq : sumsq;
    const float other = own_is_larger ? sumsq : own.sumsq;
    if (small != 0) {
        const float q = small / large;
        sum += other * (q * q);
    }
    own.scale = large;
    own.sumsq = sum;
}

}  // namespace

void native_scan(const float* gradients, std::uint32_t elements, float reciprocal_scale, std::uint32_t blocks,
                 float* triples) {
    for (std::uint32_t block = 0; block < blocks; ++block) {
        Triple own[kThreads];
        for (std::uint32_t first = block * kThreads; first < elements; first += kThreads * blocks) {
            for (std::uint32_t t = 0; t < kThreads && first + t < elements; ++t) {
                const float magnitude = std::fabs(gradients[first + t] * reciprocal_scale);
                if (std::isfinite(magnitude))
                    merge(own[t], magnitude, 1);
                else
                    own[t].flag = 1;
            }
        }
        for (std::uint32_t offset = kThreads / 2; offset > 0; offset /= 2) {
            for (std::uint32_t t = 0; t < offset; ++t) {
                merge(own[t], own[t + offset].scale, own[t + offset].sumsq);
                if (own[t + offset].flag != 0) own[t].flag = 1;
            }
        }
        std::memcpy(triples + std::size_t{3} * block, &own[0], sizeof(Triple));
    }
}

void native_update(const NativeUpdate& a) {
    const NativeUpdate c = a;
    const float* __restrict__ parameters = a.parameters;
    const float* __restrict__ gradients = a.gradients;
    const float* __restrict__ first_moment = a.first_moment;
    const float* __restrict__ second_moment = a.second_moment;
    float* __restrict__ new_parameters = a.new_parameters;
    float* __restrict__ new_first_moment = a.new_first_moment;
    float* __restrict__ new_second_moment = a.new_second_moment;
    for (std::uint32_t i = 0; i < c.elements; ++i) {
        const float g = gradients[i] * c.reciprocal_scale * c.clip * c.direction;
        const float m = c.beta1 * first_moment[i] + c.one_minus_beta1 * g;
        const float v = c.beta2 * second_moment[i] + c.one_minus_beta2 * (g * g);
        const float denominator = std::sqrt(v * c.inverse_bias2) + c.epsilon;
        new_parameters[i] = parameters[i] * c.decay - c.learning_rate * ((m * c.inverse_bias1) / denominator);
        new_first_moment[i] = m;
        new_second_moment[i] = v;
    }
}

}  // namespace gradguard::bench
