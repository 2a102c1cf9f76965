// SPDX-License-Identifier: Apache-2.0
// Contract sections 4 and 6: what the host computes once for each step, against literals.
#include "reference/fp64/coefficients.h"
#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

using reference::inverse_bias;
using reference::power_by_bits;
using reference::reciprocal_scale;
using reference::update_coefficients;

constexpr std::uint64_t kLastStep = std::numeric_limits<std::uint64_t>::max();

float decay(float learning_rate, float weight_decay) {
    AdamWOptions options;
    options.learning_rate = learning_rate;
    options.weight_decay = weight_decay;
    return update_coefficients(options, {}, 1.0F, 1).decay;
}

void product_rounded_first() { GRADGUARD_CHECK(bits(decay(0.1F, 0.3F)) == 0x3F7851ECU); }

void small_products() {
    GRADGUARD_CHECK(bits(decay(1e-3F, 1e-4F)) == 0x3F7FFFFEU);
    GRADGUARD_CHECK(bits(decay(1e-4F, 1e-4F)) == 0x3F800000U);
    GRADGUARD_CHECK(bits(decay(0x1p-13F, 0x1p-12F)) == 0x3F800000U);
    GRADGUARD_CHECK(bits(decay(0x1.000002p-13F, 0x1p-12F)) == 0x3F7FFFFFU);
    GRADGUARD_CHECK(bits(decay(0.0F, 0.5F)) == 0x3F800000U);
}

void reciprocals() {
    GRADGUARD_CHECK(bits(reciprocal_scale(0x1p-127F)) == 0x7F000000U);
    GRADGUARD_CHECK(bits(reciprocal_scale(0x1p126F)) == 0x00800000U);
    GRADGUARD_CHECK(bits(reciprocal_scale(0x1p127F)) == 0x00400000U);
    GRADGUARD_CHECK(bits(reciprocal_scale(kMax)) == 0x00200000U);
    GRADGUARD_CHECK(bits(reciprocal_scale(128.0F)) == 0x3C000000U);
    GRADGUARD_CHECK(bits(reciprocal_scale(3.0F)) == 0x3EAAAAABU);
}

void bias_of_long_runs() {
    const float beta2 = std::bit_cast<float>(0x3F7FFFFFU);
    GRADGUARD_CHECK(bits(inverse_bias(beta2, 1ULL << 24U)) == 0x3FCA7E36U);
    GRADGUARD_CHECK(bits(inverse_bias(beta2, 3ULL << 23U)) == 0x3FA4C386U);
    GRADGUARD_CHECK(bits(inverse_bias(beta2, 1ULL << 25U)) == 0x3F9408C5U);
    GRADGUARD_CHECK(bits(inverse_bias(beta2, 1ULL << 26U)) == 0x3F82635DU);
    GRADGUARD_CHECK(bits(inverse_bias(0.999F, 256)) == 0x408D9F11U);
    GRADGUARD_CHECK(bits(inverse_bias(0.999F, 257)) == 0x408D234BU);
}

void bias_at_the_ends() {
    for (const float beta : {0.9F, 0.999F, std::bit_cast<float>(0x3F7FFFFFU)}) {
        GRADGUARD_CHECK(bits(inverse_bias(beta, kLastStep)) == 0x3F800000U);
    }
    GRADGUARD_CHECK(bits(inverse_bias(0.0F, 1)) == 0x3F800000U);
    GRADGUARD_CHECK(bits(inverse_bias(0.5F, 1)) == 0x40000000U);
    GRADGUARD_CHECK(bits(inverse_bias(0.5F, 2)) == 0x3FAAAAABU);  // 4/3
}

void powers() {
    const double beta = static_cast<double>(0.9F);
    const double square = beta * beta;
    const double fourth = square * square;
    GRADGUARD_CHECK(bits(power_by_bits(0.9F, 1)) == bits(beta));
    GRADGUARD_CHECK(bits(power_by_bits(0.9F, 2)) == bits(square));
    GRADGUARD_CHECK(bits(power_by_bits(0.9F, 3)) == bits(beta * square));
    GRADGUARD_CHECK(bits(power_by_bits(0.9F, 5)) == bits(beta * fourth));
    GRADGUARD_CHECK(bits(power_by_bits(0.9F, 7)) == bits((beta * square) * fourth));
    GRADGUARD_CHECK(power_by_bits(0.5F, 1000) == 0x1p-1000);
    GRADGUARD_CHECK(power_by_bits(0.9F, kLastStep) == 0.0);
}

void everything_is_handed_over() {
    AdamWOptions options;
    options.maximize = true;
    options.amsgrad = true;
    const auto c = update_coefficients(options, {.gradient_scale = 128.0F}, 0.25F, 1);
    GRADGUARD_CHECK(c.r == 0x1p-7F && c.clip == 0.25F);
    GRADGUARD_CHECK(c.beta1 == 0.9F && bits(c.one_minus_beta1) == 0x3DCCCCD0U);
    GRADGUARD_CHECK(c.beta2 == 0.999F && bits(c.one_minus_beta2) == 0x3A831200U);
    GRADGUARD_CHECK(bits(c.inverse_bias1) == bits(inverse_bias(0.9F, 1)));
    GRADGUARD_CHECK(bits(c.inverse_bias2) == bits(inverse_bias(0.999F, 1)));
    GRADGUARD_CHECK(c.epsilon == 1e-5F && c.learning_rate == 1e-3F && bits(c.decay) == 0x3F7FFFFEU);
    GRADGUARD_CHECK(c.maximize && c.amsgrad);
}

constexpr Fact kFacts[] = {
    {"the product in the decay is rounded first: 0x3F7851EC", product_rounded_first},
    {"a product of at most 2^-25 vanishes in the decay", small_products},
    {"reciprocals of extreme scales: 0x7F000000 to 0x00200000", reciprocals},
    {"the bias goes on shrinking past 256 and 2^24 steps", bias_of_long_runs},
    {"the first step has the whole bias and the last none", bias_at_the_ends},
    {"powers are multiplied in the contract's order", powers},
    {"a step's coefficients are those of its options", everything_is_handed_over},
};

}  // namespace

std::span<const Fact> coefficient_facts() { return kFacts; }

}  // namespace gradguard::reference_alone
