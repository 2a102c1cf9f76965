// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/option_rules.h"

#include <cstdio>
#include <string>

namespace gradguard::reference {
namespace {

std::string decimal(float x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(x));
    return text;
}

template <class Options, std::size_t kRules>
std::optional<Violation> first_broken(const std::array<OptionRule<Options>, kRules>& rules, const Options& options) {
    for (const auto& rule : rules) {
        if (rule.accepts(options)) continue;
        return make_violation(ErrorKind::kInvalidOption, std::nullopt, rule.operand,
                              "want " + std::string(rule.wanted) + ", got " + decimal(rule.value(options)));
    }
    return std::nullopt;
}

}  // namespace

std::optional<Violation> check_options(const AdamWOptions& options) { return first_broken(kAdamWOptionRules, options); }
std::optional<Violation> check_control(const StepControl& control) { return first_broken(kStepControlRules, control); }
std::optional<Violation> check_guard(const GradientGuardOptions& guard) {
    return first_broken(kGuardOptionRules, guard);
}

}  // namespace gradguard::reference
