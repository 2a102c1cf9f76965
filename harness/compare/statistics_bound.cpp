// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/statistics_bound.h"

#include <array>
#include <bit>

#include "harness/compare/report.h"
#include "reference/contract/error.h"
#include "reference/exact/float_bits.h"
#include "reference/fp64/decision.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
namespace {

using Found = std::optional<Mismatch>;

Mismatch mismatch(std::string what, std::optional<std::uint64_t> entry, std::string got, std::string want) {
    Mismatch result;
    result.what = std::move(what);
    result.entry = entry;
    result.got = std::move(got);
    result.want = std::move(want);
    return result;
}

Found compare(const char* what, float got, float want, std::optional<std::uint64_t> entry = std::nullopt) {
    if (reference::same_float(got, want)) return std::nullopt;
    return mismatch(what, entry, float_text(got), float_text(want));
}
Found compare(const char* what, double got, double want) {
    if (std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(want)) return std::nullopt;
    return mismatch(what, std::nullopt, double_text(got), double_text(want));
}
Found compare(const char* what, std::uint64_t got, std::uint64_t want) {
    if (got == want) return std::nullopt;
    return mismatch(what, std::nullopt, std::to_string(got), std::to_string(want));
}
Found compare(const char* what, bool got, bool want) {
    if (got == want) return std::nullopt;
    return mismatch(what, std::nullopt, got ? "true" : "false", want ? "true" : "false");
}

/// The first that is there.
template <std::size_t kCount>
Found first_of(const Found (&found)[kCount]) {
    for (const auto& one : found) {
        if (one) return one;
    }
    return std::nullopt;
}

}  // namespace

Found compare_reports(const GradientStatsReport& got, const GradientStatsReport& want) {
    if (auto found = compare("summaries", got.summaries.size(), want.summaries.size())) return found;
    for (std::size_t i = 0; i < want.summaries.size(); ++i) {
        const GradientSummary& g = got.summaries[i];
        const GradientSummary& w = want.summaries[i];
        if (auto found =
                first_of({compare("summary.bad", g.bad, w.bad, i), compare("summary.scale", g.scale, w.scale, i),
                          compare("summary.sumsq", g.sumsq, w.sumsq, i)})) {
            return found;
        }
    }
    return first_of({compare("all_finite", got.stats.all_finite, want.stats.all_finite),
                     compare("max_finite_abs", got.stats.max_finite_abs, want.stats.max_finite_abs),
                     compare("total_norm", got.stats.total_norm, want.stats.total_norm),
                     compare("elements", got.stats.elements, want.stats.elements),
                     compare("tensors", got.stats.tensors, want.stats.tensors),
                     compare("gradient_scale", got.stats.gradient_scale, want.stats.gradient_scale),
                     compare("reduction_launches", got.reduction_launches, want.reduction_launches),
                     compare("readback_bytes", got.readback_bytes, want.readback_bytes),
                     compare("scratch_bytes", got.scratch_bytes, want.scratch_bytes)});
}

Found judge_statistics(const GradientStatsReport& got, std::span<const reference::GradientView> gradients,
                       float gradient_scale, std::uint32_t block_limit) {
    return compare_reports(got, reference::group_statistics(gradients, gradient_scale, block_limit));
}

Found judge_decision(const GradientDecision& got, const GradientStats& reported, const GradientGuardOptions& guard) {
    try {
        const GradientDecision want = reference::decide(reported, guard);
        return first_of({compare("skip_update", got.skip_update, want.skip_update),
                         compare("clip_multiplier", got.clip_multiplier, want.clip_multiplier)});
    } catch (const Error& error) {
        return mismatch("decision", std::nullopt, "clip " + float_text(got.clip_multiplier), error.what());
    }
}

Found compare_coefficients(const reference::UpdateCoefficients& got, const reference::UpdateCoefficients& want) {
    return first_of(
        {compare("r", got.r, want.r), compare("clip", got.clip, want.clip), compare("beta1", got.beta1, want.beta1),
         compare("one_minus_beta1", got.one_minus_beta1, want.one_minus_beta1), compare("beta2", got.beta2, want.beta2),
         compare("one_minus_beta2", got.one_minus_beta2, want.one_minus_beta2),
         compare("inverse_bias1", got.inverse_bias1, want.inverse_bias1),
         compare("inverse_bias2", got.inverse_bias2, want.inverse_bias2), compare("epsilon", got.epsilon, want.epsilon),
         compare("learning_rate", got.learning_rate, want.learning_rate), compare("decay", got.decay, want.decay),
         compare("maximize", got.maximize, want.maximize), compare("amsgrad", got.amsgrad, want.amsgrad)});
}

}  // namespace gradguard::harness
