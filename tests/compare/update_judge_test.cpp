// SPDX-License-Identifier: Apache-2.0
// Whole arrays: the first offender, the count, and the greatest error in ulp of the exact result.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "harness/compare/measure.h"
#include "harness/compare/ulp.h"
#include "harness/compare/update_bound.h"
#include "reference/exact/float_bits.h"
#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::float_of;
using reference::step_ulps;
using reference::UpdateCoefficients;

const gradguard::testing::FixedRapidCheckSeed kSeed;

/// An entry's arrays before and after an uncontracted update.
struct Arrays {
    UpdateCoefficients c;
    gradguard::testing::Gradient gradient;
    std::vector<float> old_p, old_m, old_v, old_x, p, m, v, x;
    bool first = false;

    UpdateOperands operands() const {
        UpdateOperands o{gradient.view(), old_p, old_m, old_v, old_x, p, m, v, x};
        if (first) o.old_first_moment = o.old_second_moment = o.old_max_second_moment = {};
        return o;
    }
};

Arrays arrays(std::size_t n, bool amsgrad, bool first, std::uint32_t seed, DType dtype = DType::kF32) {
    Arrays a;
    AdamWOptions options;
    options.amsgrad = amsgrad;
    a.c = reference::update_coefficients(options, {.gradient_scale = 8.0F}, 0.3F, first ? 1 : 9);
    a.first = first;
    std::uint32_t word = seed;
    const auto next = [&] {
        word = word * 1664525U + 1013904223U;
        return float_of((word & reference::kSignBit) | (0x3C000000U + (word >> 3U) % 0x06000000U));
    };
    std::vector<float> raw(n);
    for (auto& value : raw) {
        value = next();
        if (dtype == DType::kBF16) value = float_of(reference::bits_of(value) & 0xFFFF0000U);
    }
    a.gradient = dtype == DType::kF32 ? gradguard::testing::f32(raw) : gradguard::testing::bf16(raw);
    for (std::size_t i = 0; i < n; ++i) {
        const ElementState<float> old{next(), first ? 0.0F : next(), first ? 0.0F : std::fabs(next()),
                                      first || !amsgrad ? 0.0F : std::fabs(next())};
        const auto result = reference::update_element(raw[i], old, a.c);
        a.old_p.push_back(old.p);
        a.old_m.push_back(old.m);
        a.old_v.push_back(old.v);
        if (amsgrad) a.old_x.push_back(old.x);
        a.p.push_back(result.p);
        a.m.push_back(result.m);
        a.v.push_back(result.v);
        if (amsgrad) a.x.push_back(result.x);
    }
    return a;
}

TEST(UpdateJudge, TheUncontractedLinesPassBothJudges) {
    for (const bool amsgrad : {false, true}) {
        for (const bool first : {false, true}) {
            for (const std::size_t n : {0U, 1U, 255U, 256U, 257U, 1000U}) {
                for (const DType dtype : {DType::kF32, DType::kBF16}) {
                    const Arrays a = arrays(n, amsgrad, first, 17, dtype);
                    for (const auto contraction : {Contraction::kForbidden, Contraction::kAllowed}) {
                        const UpdateVerdict verdict = judge_update(a.operands(), a.c, contraction);
                        EXPECT_TRUE(verdict.ok);
                        EXPECT_EQ(verdict.outside, 0U);
                        EXPECT_FALSE(verdict.first);
                    }
                }
            }
        }
    }
}

TEST(UpdateJudge, TheFirstOffenderIsNamedWithItsOperand) {
    const struct {
        Operand operand;
        std::vector<float> Arrays::*values;
    } rows[] = {{Operand::kParameters, &Arrays::p},
                {Operand::kFirstMoment, &Arrays::m},
                {Operand::kSecondMoment, &Arrays::v},
                {Operand::kMaxSecondMoment, &Arrays::x}};
    for (const auto& row : rows) {
        Arrays a = arrays(1000, true, false, 23);
        for (const std::size_t place : {300U, 711U}) {
            auto& value = (a.*row.values)[place];
            value = step_ulps(value, 9);
        }
        const UpdateVerdict verdict = judge_update(a.operands(), a.c, Contraction::kAllowed);
        EXPECT_FALSE(verdict.ok);
        EXPECT_EQ(verdict.outside, 2U);
        ASSERT_TRUE(verdict.first);
        EXPECT_EQ(verdict.first->operand, row.operand);
        EXPECT_EQ(verdict.first->index, 300U);
        EXPECT_EQ(verdict.first->got, (a.*row.values)[300]);
        const auto exact = reference::exact_update(reference::raw_value(a.gradient.view(), 300),
                                                   {a.old_p[300], a.old_m[300], a.old_v[300], a.old_x[300]}, a.c);
        const reference::Real parts[] = {exact.p, exact.m, exact.v, exact.x};
        EXPECT_EQ(verdict.first->ulp, ulp_error(verdict.first->got, parts[static_cast<int>(row.operand)]));
        EXPECT_EQ(verdict.first->exact, reference::to_double(parts[static_cast<int>(row.operand)]));
    }
}

TEST(UpdateJudge, ANaNIsAnOffender) {
    for (std::vector<float> Arrays::*values : {&Arrays::p, &Arrays::m, &Arrays::v, &Arrays::x}) {
        Arrays a = arrays(300, true, false, 29);
        (a.*values)[299] = std::numeric_limits<float>::quiet_NaN();
        const UpdateVerdict verdict = judge_update(a.operands(), a.c, Contraction::kAllowed);
        ASSERT_TRUE(verdict.first);
        EXPECT_EQ(verdict.first->index, 299U);
        EXPECT_EQ(verdict.first->ulp, HUGE_VAL);
    }
}

TEST(UpdateJudge, AnUpdateThatDidNothingIsAnOffender) {
    Arrays a = arrays(64, false, false, 31);
    a.p = a.old_p;
    EXPECT_FALSE(judge_update(a.operands(), a.c, Contraction::kAllowed).ok);
}

TEST(UpdateJudge, WrongCoefficientsAreNoticed) {
    const Arrays a = arrays(64, false, false, 37);
    UpdateCoefficients other = a.c;
    other.clip = step_ulps(a.c.clip, 1);
    EXPECT_FALSE(judge_update(a.operands(), other, Contraction::kAllowed).ok);
    other = a.c;
    other.inverse_bias2 = step_ulps(a.c.inverse_bias2, 40);
    EXPECT_FALSE(judge_update(a.operands(), other, Contraction::kAllowed).ok);
}

TEST(UpdateJudge, TheWorstErrorIsThatAgainstTheExactReading) {
    const Arrays a = arrays(2000, true, false, 41);
    const UpdateVerdict verdict = judge_update(a.operands(), a.c, Contraction::kAllowed);
    double worst[kOperands] = {};
    std::uint64_t where[kOperands] = {};
    for (std::uint64_t i = 0; i < 2000; ++i) {
        const auto exact = reference::exact_update(reference::raw_value(a.gradient.view(), i),
                                                   {a.old_p[i], a.old_m[i], a.old_v[i], a.old_x[i]}, a.c);
        const double errors[kOperands] = {ulp_error(a.p[i], exact.p), ulp_error(a.m[i], exact.m),
                                          ulp_error(a.v[i], exact.v), ulp_error(a.x[i], exact.x)};
        for (int k = 0; k < kOperands; ++k) {
            if (errors[k] > worst[k]) worst[k] = errors[k], where[k] = i;
        }
    }
    for (std::size_t k = 0; k < kOperands; ++k) {
        const std::uint64_t i = where[k];
        const Centre centre =
            centre_of(reference::raw_value(a.gradient.view(), i), {a.old_p[i], a.old_m[i], a.old_v[i], a.old_x[i]},
                      reference::line_coefficients<double>(a.c));
        const double noise[kOperands] = {centre.noise.p, centre.noise.m, centre.noise.v, centre.noise.x};
        const double exact[kOperands] = {centre.exact.p, centre.exact.m, centre.exact.v, centre.exact.x};
        const double own = noise[k] / ulp_of(exact[k]);  // of an error in FP64 against one at 256 bits
        EXPECT_LE(std::fabs(verdict.worst[k].ulp - worst[k]), own) << k;
        EXPECT_EQ(verdict.worst[k].index, where[k]) << k;
        EXPECT_GT(worst[k], 0.0);
    }
}

TEST(UpdateJudge, MeasuringIsOptional) {
    const Arrays a = arrays(100, false, false, 43);
    EXPECT_EQ(judge_update(a.operands(), a.c, Contraction::kAllowed, false).worst_of(Operand::kParameters).ulp, 0.0);
}

TEST(UpdateJudge, SpansOfOtherSizesAreRefused) {
    const Arrays a = arrays(10, true, false, 47);
    for (const int which : {0, 1, 2, 3}) {
        UpdateOperands o = a.operands();
        if (which == 0) o.parameters = o.parameters.first(9);
        if (which == 1) o.max_second_moment = {};
        if (which == 2) o.old_second_moment = {};
        if (which == 3) o.old_parameters = {};
        EXPECT_THROW(judge_update(o, a.c, Contraction::kAllowed), std::invalid_argument) << which;
    }
}

RC_GTEST_PROP(UpdateJudgeProperty, TheCentreIsOffByAtMostItsNoise, ()) {
    const auto word = [] { return gradguard::testing::any_word(); };
    AdamWOptions options;
    options.amsgrad = word() % 2U == 0;
    options.beta1 = *rc::gen::element(0.0F, 0.5F, 0.9F);
    const auto c = reference::update_coefficients(options, {.gradient_scale = *rc::gen::element(1.0F, 3.0F, 0x1p-100F)},
                                                  *rc::gen::element(1.0F, 0.3F, 0x1p-140F), 1 + word() % 50U);
    const auto any = [&] { return gradguard::testing::spread_float(word()); };
    ElementState<float> old{any(), any(), std::fabs(any()), std::fabs(any())};
    float raw = any();
    if (word() % 3U == 0) {  // near cancellation of the first moment
        raw = -old.m * c.beta1 / c.one_minus_beta1 / c.clip / c.r;
        if (!std::isfinite(raw)) raw = 0.0F;
    }
    const Centre centre = centre_of(raw, old, reference::line_coefficients<double>(c));
    const auto exact = reference::exact_update(raw, old, c);
    const auto close = [](double a, double noise, const reference::Real& b) {
        return noise == HUGE_VAL || abs(reference::Real(reference::Real(a) - b)) <= reference::Real(noise);
    };
    RC_ASSERT(close(centre.exact.p, centre.noise.p, exact.p));
    RC_ASSERT(close(centre.exact.m, centre.noise.m, exact.m));
    RC_ASSERT(close(centre.exact.v, centre.noise.v, exact.v));
    RC_ASSERT(close(centre.exact.x, centre.noise.x, exact.x));
}

}  // namespace
}  // namespace gradguard::harness
