// SPDX-License-Identifier: Apache-2.0
// The oracle from Python.
#include "reference/model/statistics.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "python/src/bindings.h"
#include "reference/contract/error.h"
#include "reference/fp64/option_rules.h"
#include "reference/fp64/self_check.h"
#include "reference/model/validation.h"

namespace gradguard::python {

Gradients::Gradients(const nb::object& sequence) {
    for (nb::handle item : sequence) {
        kept.push_back(nb::borrow(item));
        arrays.push_back(view_dense(item, {arrays.size(), "gradients"}));
    }
    for (const ArrayView& array : arrays) views.push_back(gradient_view(array));
}

void require_scale(float gradient_scale) {
    reference::require_sound_arithmetic();
    if (const auto violation = reference::check_control({gradient_scale, false})) reference::raise(*violation);
}

void require_blocks(std::uint32_t block_limit) {
    if (block_limit == 0) throw nb::value_error("block_limit: want at least 1, got 0");
}

namespace {

double exact_norm(const nb::object& gradients, float gradient_scale) {
    require_scale(gradient_scale);
    const Gradients group(gradients);
    const nb::gil_scoped_release unlocked;
    return reference::exact_norm(group.views, gradient_scale);
}

nb::object exact_sum(const nb::object& gradients, float gradient_scale) {
    require_scale(gradient_scale);
    const Gradients group(gradients);
    reference::ExactSumOfSquares sum;
    for (const reference::GradientView& view : group.views) {
        sum += reference::exact_scan(view, reference::reciprocal_scale(gradient_scale)).sum;
    }
    std::array<unsigned char, reference::ExactSumOfSquares::kLimbs * 8> bytes{};
    std::memcpy(bytes.data(), sum.limbs().data(), bytes.size());
    const nb::object integer = nb::module_::import_("builtins").attr("int");
    return integer.attr("from_bytes")(nb::bytes(bytes.data(), bytes.size()), "little");
}

GradientSummary tree_summary(const nb::object& gradients, float gradient_scale, std::uint32_t block_limit) {
    require_scale(gradient_scale);
    require_blocks(block_limit);
    const ArrayView view = view_dense(gradients, {{}, "gradients"});
    const nb::gil_scoped_release unlocked;
    return reference::tree_summary(gradient_view(view), reference::reciprocal_scale(gradient_scale), block_limit);
}

GradientStatsReport statistics(const nb::object& gradients, float gradient_scale, std::uint32_t block_limit) {
    require_scale(gradient_scale);
    require_blocks(block_limit);
    const Gradients group(gradients);
    const nb::gil_scoped_release unlocked;
    return reference::group_statistics(group.views, gradient_scale, block_limit);
}

PyGuardedUpdate guarded_step(const nb::object& sequence, const AdamWOptions& options, const StepControl& control,
                             const GradientGuardOptions& guard) {
    reference::require_sound_arithmetic();
    const nb::list items(sequence);
    const std::vector<const PyEntry*> entries = entries_of(items);
    std::vector<reference::HostEntry> host;
    for (std::size_t i = 0; i < entries.size(); ++i) host.push_back(host_entry(*entries[i], i));
    reference::HostGuardedUpdate update;
    {
        const nb::gil_scoped_release unlocked;
        update = reference::guarded_step(host, options, control, guard);
    }
    PyGuardedUpdate result{nb::list(), std::move(update.report), update.clip_multiplier, update.skip_reason};
    for (std::size_t i = 0; i < entries.size(); ++i) {
        result.entries.append(nb::cast(update_of(*entries[i], update.entries[i])));
    }
    return result;
}

PyUpdate adamw(const nb::object& parameters, const nb::object& gradients, const nb::object& state,
               const AdamWOptions& options, const StepControl& control) {
    reference::require_sound_arithmetic();
    const PyEntry entry{parameters, gradients, state};
    const reference::HostEntry host = host_entry(entry, 0);
    return update_of(entry, reference::adamw_step(host, options, control));
}

reference::UpdateCoefficients coefficients(const AdamWOptions& options, const StepControl& control, float clip,
                                           std::uint64_t t) {
    reference::require_sound_arithmetic();
    if (const auto violation = reference::check_options(options)) reference::raise(*violation);
    if (const auto violation = reference::check_control(control)) reference::raise(*violation);
    if (t == 0) throw nb::value_error("t: want the step being taken, at least 1, got 0");
    return reference::update_coefficients(options, control, clip, t);
}

void bind_coefficients(nb::module_& module) {
    using C = reference::UpdateCoefficients;
    nb::class_<C>(module, "UpdateCoefficients", "What one step's update lines use (contract section 6).")
        .def_ro("r", &C::r, "1 / gradient_scale")
        .def_ro("clip", &C::clip)
        .def_ro("beta1", &C::beta1)
        .def_ro("one_minus_beta1", &C::one_minus_beta1)
        .def_ro("beta2", &C::beta2)
        .def_ro("one_minus_beta2", &C::one_minus_beta2)
        .def_ro("inverse_bias1", &C::inverse_bias1)
        .def_ro("inverse_bias2", &C::inverse_bias2)
        .def_ro("epsilon", &C::epsilon)
        .def_ro("learning_rate", &C::learning_rate)
        .def_ro("decay", &C::decay, "1 - learning_rate * weight_decay, the product rounded first")
        .def_ro("maximize", &C::maximize)
        .def_ro("amsgrad", &C::amsgrad);
    module.def("coefficients", &coefficients, nb::arg("options"), nb::arg("control") = StepControl{},
               nb::arg("clip_multiplier") = 1.0F, nb::arg("t") = 1,
               "Coefficients of the update to step t (completed steps + 1). Raises InvalidOption.");
}

/// One tensor's [n] values; empty shape means the shape that the parameters have.
nb::object shaped_like(const PyEntry& entry, std::span<const float> values) {
    return new_array_of(view_array(entry.parameters, {{}, "parameters"}).layout.shape, values);
}

}  // namespace

reference::HostEntry host_entry(const PyEntry& entry, std::size_t index) {
    const auto same_shape = [&](const nb::object& array, const char* name) {
        const ArrayView parameters = view_array(entry.parameters, {index, "parameters"});
        const ArrayView other = view_array(array, {index, name});
        if (parameters.layout.shape == other.layout.shape) return;
        throw Error(ErrorKind::kShapeMismatch, {.entry = index, .operand = name},
                    "want the parameters' shape " + list_to_string(parameters.layout.shape) + ", got " +
                        list_to_string(other.layout.shape));
    };
    reference::HostEntry host;
    host.parameters = copy_floats(entry.parameters, {index, "parameters"});
    const ArrayView gradients = view_dense(entry.gradients, {index, "gradients"});
    same_shape(entry.gradients, "gradients");
    host.gradient_dtype = gradients.layout.dtype;
    host.gradients.assign(gradients.data, gradients.data + gradients.bytes());
    const PyState* const state = state_of(entry.state);
    if (state == nullptr) return host;
    const auto moment = [&](const nb::object& array, const char* name) {
        same_shape(array, name);
        return copy_floats(array, {index, name});
    };
    host.state = reference::HostState{state->step, moment(state->first_moment, "first_moment"),
                                      moment(state->second_moment, "second_moment"), std::nullopt};
    if (!state->max_second_moment.is_none()) {
        host.state->max_second_moment = moment(state->max_second_moment, "max_second_moment");
    }
    return host;
}

PyUpdate update_of(const PyEntry& entry, const reference::HostUpdate& update) {
    if (!update.updated) return {entry.parameters, entry.state, false};
    PyState state;
    state.step = update.state->step;
    state.first_moment = shaped_like(entry, update.state->first_moment);
    state.second_moment = shaped_like(entry, update.state->second_moment);
    if (update.state->max_second_moment) state.max_second_moment = shaped_like(entry, *update.state->max_second_moment);
    return {shaped_like(entry, update.parameters), nb::cast(std::move(state)), true};
}

void bind_reference(nb::module_& module) {
    module.def("exact_norm", &exact_norm, nb::arg("gradients"), nb::arg("gradient_scale") = 1.0F,
               "The root of the exact sum of squares of the unscaled FP32 values of a sequence of arrays, rounded once "
               "to FP64; inf when anything is NaN or infinite. The sum is an integer of 640 bits: no rounding before "
               "the root. Raises InvalidOption, InvalidTensor.");
    module.def("exact_sum_of_squares", &exact_sum, nb::arg("gradients"), nb::arg("gradient_scale") = 1.0F,
               nb::sig("def exact_sum_of_squares(gradients: object, gradient_scale: float = 1.0) -> int"),
               "The exact sum itself over the good elements, as an integer in units of 2**-298.");
    module.def("tree_summary", &tree_summary, nb::arg("gradients"), nb::arg("gradient_scale") = 1.0F,
               nb::arg("block_limit") = 1024U,
               "The summary of one array that contract section 4's tree gives, bit for bit.");
    module.def("gradient_stats", &statistics, nb::arg("gradients"), nb::arg("gradient_scale") = 1.0F,
               nb::arg("block_limit") = 1024U,
               "The statistics of a group as the contract has them, bit for bit, computed on the host.");
    module.def("guarded_adamw_step", &guarded_step, nb::arg("entries"), nb::arg("options") = AdamWOptions{},
               nb::arg("control") = StepControl{}, nb::arg("guard") = GradientGuardOptions{},
               "The guarded step by the oracle, update lines uncontracted. Copies its inputs. Raises the errors of "
               "contract section 3.");
    module.def("adamw_step", &adamw, nb::arg("parameters"), nb::arg("gradients"), nb::arg("state").none() = nb::none(),
               nb::arg("options") = AdamWOptions{}, nb::arg("control") = StepControl{},
               "The unguarded step by the oracle. Copies its inputs. Raises the errors of contract section 3.");
    bind_coefficients(module);
}

}  // namespace gradguard::python
