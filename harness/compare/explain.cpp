// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/explain.h"

#include <cmath>
#include <cstdio>

#include "harness/compare/enclosure.h"
#include "harness/compare/measure.h"
#include "harness/compare/norm_bound.h"
#include "harness/compare/report.h"
#include "harness/compare/ulp.h"
#include "harness/compare/update_bound.h"
#include "reference/fp64/summary_rules.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::LineCoefficients;
using reference::Lines;
using reference::Real;

std::string formatted(const char* format, auto... values) {
    char text[160];
    std::snprintf(text, sizeof text, format, values...);
    return text;
}

/// Enough digits to tell neighbours in FP32 and what lies between them.
std::string real_text(const Real& x) { return x.str(20, std::ios_base::scientific); }

/// The intermediates of contract section 6 over one number type, in order.
template <class T>
struct Steps {
    T unscaled, g, m_kept, m_added, m, square, v_kept, v_added, v, x, numerator, root, ratio, decayed, moved, p;

    Steps(float raw, const ElementState<T>& old, const LineCoefficients<T>& c) {
        using std::sqrt;
        unscaled = T(raw) * c.r;
        g = Lines<>::effective_gradient(T(raw), c);
        m_kept = c.beta1 * old.m;
        m_added = c.one_minus_beta1 * g;
        m = Lines<>::first_moment(old.m, g, c);
        square = g * g;
        v_kept = c.beta2 * old.v;
        v_added = c.one_minus_beta2 * square;
        v = Lines<>::second_moment(old.v, g, c);
        x = Lines<>::running_maximum(old.x, v, c);
        numerator = m * c.inverse_bias1;
        root = sqrt(T(x * c.inverse_bias2));
        ratio = numerator / T(root + c.epsilon);
        decayed = old.p * c.decay;
        moved = c.learning_rate * ratio;
        p = Lines<>::parameter(old.p, m, x, c);
    }
};

class ElementStory {
  public:
    ElementStory(float raw, const ElementState<float>& old, const ElementState<float>& stored,
                 const reference::UpdateCoefficients& c, const Abilities& abilities)
        : raw_(raw), old_(old), stored_(stored), c_(c), abilities_(abilities) {}

    std::vector<std::string> tell() {
        tell_inputs();
        tell_lines();
        const auto exact = reference::exact_update(raw_, old_, c_);
        const ElementIntervals all = intervals(raw_, old_, c_, abilities_);
        const ElementHulls hulls = legal_hulls(raw_, old_, c_);
        const ElementLegalSets sets = legal_sets(raw_, old_, stored_, c_);
        const Centre centre = centre_of(raw_, old_, reference::line_coefficients<double>(c_));
        tell_result("m", stored_.m, exact.m, sets.m, hulls.m, all.m);
        tell_result("v", stored_.v, exact.v, sets.v, hulls.v, all.v);
        if (c_.amsgrad) tell_result("x", stored_.x, exact.x, sets.x, hulls.x, all.x);
        tell_result("p", stored_.p, exact.p, sets.p, hulls.p, all.p);
        lines_.emplace_back(centre.balanced ? "balanced: the summands of each line lie within a factor of 4"
                                            : "not balanced: a fraction of the bound says nothing here");
        return std::move(lines_);
    }

  private:
    void line(const std::string& text) { lines_.push_back(text); }

    void tell_inputs() {
        line("gradient   " + float_text(raw_) + " as stored, widened");
        line("p_old      " + float_text(old_.p));
        line("m_old      " + float_text(old_.m));
        line("v_old      " + float_text(old_.v));
        if (c_.amsgrad) line("max_old    " + float_text(old_.x));
        line("r          " + float_text(c_.r) + ", clip " + float_text(c_.clip) + (c_.maximize ? ", maximize" : ""));
        line("beta1      " + float_text(c_.beta1) + ", 1 - beta1 " + float_text(c_.one_minus_beta1));
        line("beta2      " + float_text(c_.beta2) + ", 1 - beta2 " + float_text(c_.one_minus_beta2));
        line("inverse_bias1 " + float_text(c_.inverse_bias1) + ", inverse_bias2 " + float_text(c_.inverse_bias2));
        line("epsilon    " + float_text(c_.epsilon) + ", learning_rate " + float_text(c_.learning_rate) + ", decay " +
             float_text(c_.decay));
    }

    void tell_lines() {
        line("each line from the old state: exact, then as FP32 computes it uncontracted");
        const Steps<Real> exact(raw_, reference::to_real(old_), reference::line_coefficients<Real>(c_));
        const Steps<float> computed(raw_, old_, reference::line_coefficients<float>(c_));
        const auto tell = [&](const char* formula, const Real& want, float got) {
            line(formatted("  %-34s", formula) + real_text(want) + "  " + float_text(got) + "  " +
                 formatted("%.4g ulp", ulp_error(got, want)));
        };
        tell("gradient * r", exact.unscaled, computed.unscaled);
        tell("g = * clip, sign", exact.g, computed.g);
        tell("beta1 * m_old", exact.m_kept, computed.m_kept);
        tell("(1 - beta1) * g", exact.m_added, computed.m_added);
        tell("m = sum", exact.m, computed.m);
        tell("g * g", exact.square, computed.square);
        tell("beta2 * v_old", exact.v_kept, computed.v_kept);
        tell("(1 - beta2) * (g * g)", exact.v_added, computed.v_added);
        tell("v = sum", exact.v, computed.v);
        if (c_.amsgrad) tell("x = max(max_old, v)", exact.x, computed.x);
        tell("m * inverse_bias1", exact.numerator, computed.numerator);
        tell("sqrt(x * inverse_bias2)", exact.root, computed.root);
        tell("ratio = / (sqrt + epsilon)", exact.ratio, computed.ratio);
        tell("p_old * decay", exact.decayed, computed.decayed);
        tell("learning_rate * ratio", exact.moved, computed.moved);
        tell("p = difference", exact.p, computed.p);
    }

    void tell_result(const char* name, float got, const Real& exact, const LegalSet& set, const Hull& hull,
                     const Interval& interval) {
        const bool by_interval = judged_by_interval(abilities_);
        const Within found = within(got, interval, reference::to_double(exact));
        const bool legal = by_interval ? found.ok : set.contains(got, abilities_.contraction);
        line(std::string(name) + " stored   " + float_text(got) + ", " +
             formatted("%.6g ulp of the exact result, ", ulp_error(got, exact)) +
             (legal ? "admitted" : "NOT ADMITTED"));
        if (!by_interval) {
            const bool contracts = abilities_.contraction == Contraction::kAllowed;
            std::string values;
            for (const auto& text : distinct_texts(contracts ? std::span<const float>(set.values)
                                                             : std::span<const float>(set.values).first(1))) {
                values += (values.empty() ? "" : "; ") + text;
            }
            line(std::string(contracts ? "  legal set, contracted or not: " : "  legal, uncontracted: ") + values);
            if (contracts) line("  hull of all contractions: " + interval_text(hull.interval()));
        }
        line("  interval (one rounding for each operation): " + interval_text(interval) +
             formatted(", %.4g of it used", found.fraction));
    }

    float raw_;
    const ElementState<float>& old_;
    const ElementState<float>& stored_;
    const reference::UpdateCoefficients& c_;
    const Abilities& abilities_;
    std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> explain_element(float raw, const ElementState<float>& old, const ElementState<float>& stored,
                                         const reference::UpdateCoefficients& c, const Abilities& abilities) {
    return ElementStory(raw, old, stored, c, abilities).tell();
}

std::vector<std::string> explain_norm(const GradientStatsReport& reported,
                                      std::span<const reference::GradientView> gradients, float gradient_scale,
                                      const Abilities& abilities) {
    std::vector<std::string> lines;
    const float r = reference::reciprocal_scale(gradient_scale);
    reference::ExactSumOfSquares sum;
    std::vector<TreeBound> bounds;
    std::uint64_t bad = 0;
    std::uint64_t elements = 0;
    const auto summary_text = [](const GradientSummary& s) {
        return "scale " + float_text(s.scale) + ", sumsq " + float_text(s.sumsq) + (s.bad != 0.0F ? ", bad" : "");
    };
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const reference::ExactScan scan = reference::exact_scan(gradients[i], r);
        const TreeBound bound = tree_bound(gradients[i], r, abilities.block_limit);
        sum += scan.sum;
        bad += scan.bad_elements;
        elements += gradients[i].elements;
        bounds.push_back(bound);
        lines.push_back("tensor " + std::to_string(i) + ": " + std::to_string(gradients[i].elements) + " elements, " +
                        std::to_string(scan.bad_elements) + " bad, exact norm " + double_text(scan.sum.root()));
        if (i < reported.summaries.size()) lines.push_back("  reported " + summary_text(reported.summaries[i]));
        lines.push_back("  tree     " + summary_text(reference::tree_summary(gradients[i], r, abilities.block_limit)));
        if (!(bound.sum > 0.0)) continue;
        lines.push_back(formatted("  bound of sumsq along the tree %.4g u, closed form %.4g u (u = 2^-24)",
                                  bound.error / bound.sum * 0x1p24,
                                  closed_form_bound(gradients[i].elements, abilities.block_limit) * 0x1p24));
    }
    lines.push_back("norm reported " + double_text(reported.stats.total_norm));
    if (bad != 0) {
        lines.push_back("exact         +inf: " + std::to_string(bad) + " bad elements");
        return lines;
    }
    const double exact = sum.root();
    const double error = std::fabs(reported.stats.total_norm - exact);
    const bool tree = abilities.norm == NormKind::kContractTree;
    const double bound =
        tree ? norm_error_bound(bounds) : any_order_bound(exact, elements, gradients.size(), r, abilities.flushes);
    lines.push_back("exact         " + double_text(exact));
    lines.push_back(formatted("error         %.6g ulp", error / ulp_of(exact)));
    lines.push_back(formatted("bound         %.6g", bound) + (tree ? " along the contract's tree" : " for any order") +
                    formatted(", %.4g of it used", error > 0.0 ? error / bound : 0.0));
    return lines;
}

}  // namespace gradguard::harness
