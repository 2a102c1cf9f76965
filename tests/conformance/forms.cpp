// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/conformance/micro_ptx.h"

namespace gradguard::conformance {

namespace {

Form named(std::string entry) {
    Form form;
    form.entry = std::move(entry);
    return form;
}

bool can_alias(const InstructionModel& model, std::size_t source) {
    return model.sources[source].literals.empty() &&
           model.sources[source].register_bits == model.results[0].register_bits;
}

std::string hex_byte(Bits value) {
    static constexpr char kDigits[] = "0123456789abcdef";
    return {kDigits[(value >> 4) & 15], kDigits[value & 15]};
}

/// A literal for source `k`, the same on every run.
Bits sample_literal(const InstructionModel& model, std::size_t k) {
    std::uint64_t seed = k;
    for (const char c : model.name) seed = seed * 131 + static_cast<unsigned char>(c);
    OperandGenerator generator({model.sources[k].kind}, Relation::Independent, seed);
    Bits bits = 0;
    generator.next({&bits, 1});
    return bits;
}

std::vector<Form> warp_forms(const InstructionModel& model) {
    std::vector<Form> forms{named("whole_warp"), named("members")};
    forms[1].partial_warp = true;
    if (model.second_result_is_optional) {
        forms.push_back(named("members_one_result"));
        forms.back().partial_warp = true;
        forms.back().without_second_result = true;
    }
    // Shuffles are nearly always written with literals.
    if (model.sources.size() == 3) {
        for (const auto& [amount, clamp] : {std::pair<Bits, Bits>{16, 31}, {1, 0}, {3, 0x1c1f}, {2, 0x181c}}) {
            forms.push_back(named("literals_" + std::to_string(amount)));
            forms.back().literals = {std::nullopt, amount, clamp};
        }
    }
    return forms;
}

}  // namespace

std::vector<Form> forms_of(const InstructionModel& model) {
    if (model.shape == Shape::Warp) return warp_forms(model);
    if (!model.body.empty()) return {named("plain")};
    std::vector<Form> forms{named("plain"), named("guarded"), named("guarded_not")};
    forms[1].guard = Form::Guard::If;
    forms[2].guard = Form::Guard::IfNot;
    for (std::size_t k = 0; k < model.sources.size(); ++k) {
        if (can_alias(model, k)) {
            forms.push_back(named("alias_" + std::to_string(k)));
            forms.back().alias = static_cast<int>(k);
            forms.push_back(named("guarded_alias_" + std::to_string(k)));
            forms.back().alias = static_cast<int>(k);
            forms.back().guard = Form::Guard::If;
        }
        if (model.sources[k].may_be_literal && model.sources[k].literals.empty() &&
            (model.sources.size() > 1 || model.name.starts_with("mov."))) {
            forms.push_back(named("literal_" + std::to_string(k)));
            forms.back().literals.resize(k + 1);
            forms.back().literals[k] = sample_literal(model, k);
        }
    }
    bool wide = model.results[0].may_be_wider;
    for (const SourceOperand& source : model.sources) wide = wide || source.may_be_wider;
    if (wide) {
        forms.push_back(named("wide"));
        forms.back().wide = true;
        forms.push_back(named("guarded_wide"));
        forms.back().wide = true;
        forms.back().guard = Form::Guard::If;
    }
    if (model.second_result_is_optional) {
        forms.push_back(named("one_result"));
        forms.back().without_second_result = true;
    }
    if (model.last_source_may_be_negated) {
        forms.push_back(named("negated"));
        forms.back().negated_source = true;
    }
    // Operands that must be literals: the first form once for each value, the others with the middle one.
    for (std::size_t k = 0; k < model.sources.size(); ++k) {
        const auto& values = model.sources[k].literals;
        if (values.empty()) continue;
        for (Form& form : forms) {
            form.literals.resize(k + 1);
            form.literals[k] = values[values.size() / 2];
        }
        for (const Bits value : values) {
            Form form = forms[0];
            form.entry = "plain_" + hex_byte(value);
            form.literals[k] = value;
            forms.push_back(form);
        }
    }
    return forms;
}

}  // namespace gradguard::conformance
