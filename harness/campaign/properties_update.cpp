// SPDX-License-Identifier: Apache-2.0
// Relations of whole steps that need no oracle: how the update depends on the gradients.
#include <cstring>
#include <utility>

#include "harness/campaign/case_edit.h"
#include "harness/campaign/property_groups.h"
#include "harness/campaign/relation.h"
#include "reference/exact/float_bits.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::harness {
namespace {

constexpr int kGreatestPower = 8;
constexpr const char* kFmad = "vgpu/fmad";
constexpr const char* kNofmad = "vgpu/nofmad";

CaseShape half_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = steps_shape(abilities, index);
    shape.abilities.f32 = false;
    return shape;
}

bool normal(float x) { return reference::classify(x) == reference::FloatClass::kNormal; }

/// scale * 2^k, where it and both reciprocals are normal; nothing elsewhere.
std::optional<float> scaled_scale(float scale, int k) {
    const float scaled = std::ldexp(scale, k);
    const bool good = normal(scale) && normal(scaled) && normal(reference::reciprocal_scale(scale)) &&
                      normal(reference::reciprocal_scale(scaled));
    return good ? std::optional(scaled) : std::nullopt;
}

bool scale_controls(Case& c, int k) {
    std::vector<StepControl*> controls = {&c.control};
    for (LaterStep& later : c.later) controls.push_back(&later.control);
    for (StepControl* control : controls) {
        const std::optional<float> scaled = scaled_scale(control->gradient_scale, k);
        if (!scaled) return false;
        control->gradient_scale = *scaled;
    }
    return true;
}

PropertyVerdict stored_and_scale(const Property& property, const Bench& bench, const Case& c) {
    const int magnitude = 1 + static_cast<int>(chosen(c, 1, kGreatestPower));
    int k = chosen(c, 2, 2) == 0 ? magnitude : -magnitude;
    Case scaled = c;
    if (!scale_controls(scaled, k)) {
        k = -k;
        scaled = c;
        if (!scale_controls(scaled, k)) return Relation::not_applicable();
    }
    // Values that leave the normal range are 0 in both.
    Case base = c;
    bool any = false;
    for_each_gradient(base, [&](ArrayBits array, std::size_t, float) {
        for (std::uint64_t i = 0; i < array.size(); ++i) {
            const std::uint32_t bits = array.get(i);
            if (array.scale(i, k)) {
                any = any || !array.is_zero(i);
                array.set(i, bits);
            } else {
                array.set(i, 0);
            }
        }
    });
    if (!any) return Relation::not_applicable();
    const StepControl control = scaled.control;
    const std::vector<LaterStep> later = scaled.later;
    scaled = base;
    for_each_gradient(scaled, [&](ArrayBits array, std::size_t, float) {
        for (std::uint64_t i = 0; i < array.size(); ++i) array.scale(i, k);
    });
    scaled.control = control;
    for (std::size_t j = 0; j < later.size(); ++j) scaled.later[j].control = later[j].control;
    Relation relation(property, "gradients and gradient_scale times 2^" + std::to_string(k) +
                                    "; values that leave the normal range are 0 in both cases");
    const Outcome want = relation.run(bench.subject(), base);
    relation.same_bits(relation.run(bench.subject(), scaled), want, {.gradient_scale = false});
    return relation.result();
}

std::vector<std::byte> widened(DType dtype, std::vector<std::byte> values) {
    const ArrayBits array(dtype, values);
    std::vector<std::byte> wide(array.size() * sizeof(float));
    for (std::uint64_t i = 0; i < array.size(); ++i) {
        const float value = array.value(i);
        std::memcpy(wide.data() + i * sizeof(float), &value, sizeof(float));
    }
    return wide;
}

PropertyVerdict half_as_f32(const Property& property, const Bench& bench, const Case& c) {
    Case wide = c;
    bool any = false;
    for (std::size_t e = 0; e < c.entries.size(); ++e) {
        CaseTensor& tensor = wide.entries[e].gradients;
        const DType dtype = tensor.layout.dtype;
        if (dtype == DType::kF32) continue;
        any = any || count(tensor) != 0;
        // The shape stays, for it has to be the parameter's.
        CaseTensor dense = dense_tensor(DType::kF32, widened(dtype, tensor.values));
        dense.layout.shape = tensor.layout.shape;
        dense.layout.strides = tensor.layout.strides;
        dense.queue = tensor.queue;
        tensor = std::move(dense);
        for (LaterStep& later : wide.later) later.gradients[e] = widened(dtype, std::move(later.gradients[e]));
    }
    if (!any) return Relation::not_applicable();
    Relation relation(property, "the gradients as F32");
    const Outcome want = relation.run(bench.subject(), c);
    relation.same_bits(relation.run(bench.subject(), wide), want);
    return relation.result();
}

PropertyVerdict negated_and_maximized(const Property& property, const Bench& bench, const Case& c) {
    Case other = c;
    other.options.maximize = !c.options.maximize;
    for_each_gradient(other, [](ArrayBits array, std::size_t, float) {
        for (std::uint64_t i = 0; i < array.size(); ++i) array.flip_sign(i);
    });
    Relation relation(property, "all gradients negated, maximize the other way");
    const Outcome want = relation.run(bench.subject(), c);
    relation.same_bits(relation.run(bench.subject(), other), want);
    return relation.result();
}

void flip_all(CaseTensor& tensor) {
    ArrayBits array(tensor.layout.dtype, tensor.values);
    for (std::uint64_t i = 0; i < array.size(); ++i) array.flip_sign(i);
}

/// With the opposite signs; zeros of either sign are zeros.
std::vector<float> mirrored(std::vector<float> values) {
    for (float& value : values) value = value == 0.0F ? 0.0F : -value;
    return values;
}
std::vector<float> without_minus_zero(std::vector<float> values) {
    for (float& value : values) value = value == 0.0F ? 0.0F : value;
    return values;
}

PropertyVerdict maximize_mirrors(const Property& property, const Bench& bench, const Case& c) {
    Case base = c;
    base.options.maximize = false;
    base.options.weight_decay = 0.0F;
    for (CaseEntry& entry : base.entries) {
        std::fill(entry.parameters.values.begin(), entry.parameters.values.end(), std::byte{0});
    }
    Case other = base;
    other.options.maximize = true;
    for (CaseEntry& entry : other.entries) {
        if (entry.state) flip_all(entry.state->first_moment);
    }
    Relation relation(property, "maximize, the first moments negated");
    Outcome want = relation.run(bench.subject(), base);
    Outcome got = relation.run(bench.subject(), other);
    const auto for_each_entry = [](Outcome& outcome, auto change) {
        for (StepOutcome& step : outcome.steps) {
            for (OutcomeEntry& entry : step.entries) {
                entry.parameters = change(std::move(entry.parameters));
                if (entry.state) entry.state->first_moment = change(std::move(entry.state->first_moment));
            }
        }
    };
    for_each_entry(want, mirrored);
    for_each_entry(got, without_minus_zero);
    relation.same_bits(got, want);
    return relation.result();
}

/// What the contract promises of both builds: statistics, decision, skips and step counts. The update's own bits depend
/// on contraction.
PropertyVerdict builds_agree(const Property& property, const Bench& bench, const Case& c) {
    const std::string peer = bench.subject().name() == kNofmad ? kFmad : kNofmad;
    Relation relation(property, "the same case on " + peer);
    Outcome want = relation.run(bench.other(peer), c);
    Outcome got = relation.run(bench.subject(), c);
    for (Outcome* outcome : {&want, &got}) {
        for (StepOutcome& step : outcome->steps) {
            for (OutcomeEntry& entry : step.entries) {
                entry.parameters.clear();
                if (!entry.state) continue;
                entry.state->first_moment.clear();
                entry.state->second_moment.clear();
                if (entry.state->max_second_moment) entry.state->max_second_moment->clear();
            }
        }
    }
    relation.same_bits(got, want);
    return relation.result();
}

bool takes_half(const Abilities& abilities) {
    return has_contract_tree(abilities) && (abilities.f16 || abilities.bf16);
}
bool can_maximize(const Abilities& abilities) { return abilities.maximize; }

}  // namespace

std::vector<Property> update_properties() {
    return {
        {"stored_and_scale", "gradients times 2^k with gradient_scale times 2^k: the same bits everywhere", 2,
         has_contract_tree, steps_shape, stored_and_scale},
        {"half_as_f32", "F16 and BF16 gradients and the same values as F32: the same bits", 2, takes_half, half_shape,
         half_as_f32},
        {"negated_and_maximized", "maximizing along negated gradients is minimizing: the same bits", 1, can_maximize,
         steps_shape, negated_and_maximized},
        {"maximize_mirrors", "maximize mirrors the parameters when they and weight decay are 0", 1, can_maximize,
         steps_shape, maximize_mirrors},
        {"builds_agree", "both builds of the kernels give the same statistics, decisions and step counts", 1,
         has_contract_tree, steps_shape, builds_agree},
    };
}

}  // namespace gradguard::harness
