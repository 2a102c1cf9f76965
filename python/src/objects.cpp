// SPDX-License-Identifier: Apache-2.0
// The contract's objects with arrays in them, and its reports.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"

namespace gradguard::python {
namespace {

void bind_reports(nb::module_& module) {
    nb::class_<GradientSummary>(module, "GradientSummary",
                                "One tensor's reduction: scale * scale * sumsq is the sum of squares of its good "
                                "elements after unscaling, scale their greatest magnitude, bad 1.0 when an element is "
                                "NaN or infinite and 0.0 otherwise.")
        .def(
            "__init__",
            [](GradientSummary* self, float scale, float sumsq, float bad) {
                new (self) GradientSummary{scale, sumsq, bad};
            },
            nb::arg("scale") = 0.0F, nb::arg("sumsq") = 0.0F, nb::arg("bad") = 0.0F)
        .def_ro("scale", &GradientSummary::scale)
        .def_ro("sumsq", &GradientSummary::sumsq)
        .def_ro("bad", &GradientSummary::bad);
    nb::class_<GradientStats>(module, "GradientStats", "Statistics of a group (contract section 1).")
        .def(
            "__init__",
            [](GradientStats* self, double total_norm, float max_finite_abs, bool all_finite, std::uint64_t elements,
               std::uint64_t tensors, float gradient_scale) {
                new (self) GradientStats{total_norm, max_finite_abs, all_finite, elements, tensors, gradient_scale};
            },
            nb::arg("total_norm") = 0.0, nb::arg("max_finite_abs") = 0.0F, nb::arg("all_finite") = true,
            nb::arg("elements") = 0, nb::arg("tensors") = 0, nb::arg("gradient_scale") = 1.0F)
        .def_ro("total_norm", &GradientStats::total_norm, "FP64; inf when any gradient is NaN or infinite.")
        .def_ro("max_finite_abs", &GradientStats::max_finite_abs)
        .def_ro("all_finite", &GradientStats::all_finite)
        .def_ro("elements", &GradientStats::elements, "Bad ones included.")
        .def_ro("tensors", &GradientStats::tensors, "Empty ones included.")
        .def_ro("gradient_scale", &GradientStats::gradient_scale);
    using Report = GradientStatsReport;
    nb::class_<Report>(module, "GradientStatsReport",
                       "Statistics with their accounting (contract section 4) and each tensor's summary.")
        .def(
            "__init__",
            [](Report* self, const GradientStats& stats, std::uint64_t launches, std::uint64_t readback,
               std::uint64_t scratch, std::vector<GradientSummary> summaries) {
                new (self) Report{stats, launches, readback, scratch, std::move(summaries)};
            },
            nb::arg("stats"), nb::arg("reduction_launches") = 0, nb::arg("readback_bytes") = 0,
            nb::arg("scratch_bytes") = 0, nb::arg("summaries") = std::vector<GradientSummary>())
        .def_ro("stats", &Report::stats)
        .def_prop_ro("total_norm", [](const Report& r) { return r.stats.total_norm; })
        .def_prop_ro("max_finite_abs", [](const Report& r) { return r.stats.max_finite_abs; })
        .def_prop_ro("all_finite", [](const Report& r) { return r.stats.all_finite; })
        .def_prop_ro("elements", [](const Report& r) { return r.stats.elements; })
        .def_prop_ro("tensors", [](const Report& r) { return r.stats.tensors; })
        .def_prop_ro("gradient_scale", [](const Report& r) { return r.stats.gradient_scale; })
        .def_ro("reduction_launches", &Report::reduction_launches)
        .def_ro("readback_bytes", &Report::readback_bytes)
        .def_ro("scratch_bytes", &Report::scratch_bytes)
        .def_ro("summaries", &Report::summaries, "One for each tensor in input order.")
        .def("__repr__", [](const Report& r) {
            return "GradientStatsReport(total_norm=" + nb::cast<std::string>(nb::repr(nb::float_(r.stats.total_norm))) +
                   ", all_finite=" + (r.stats.all_finite ? "True" : "False") +
                   ", elements=" + std::to_string(r.stats.elements) + ", tensors=" + std::to_string(r.stats.tensors) +
                   ")";
        });
    nb::class_<GradientDecision>(module, "GradientDecision", "What the guard decided for the whole group.")
        .def(
            "__init__",
            [](GradientDecision* self, float clip, bool skip) {
                new (self) GradientDecision{clip, skip};
            },
            nb::arg("clip_multiplier") = 1.0F, nb::arg("skip_update") = false)
        .def_ro("clip_multiplier", &GradientDecision::clip_multiplier, "In [0, 1]; 1 when skipping.")
        .def_ro("skip_update", &GradientDecision::skip_update);
    nb::enum_<SkipReason>(module, "SkipReason", "Why a guarded step changed nothing.")
        .value("Requested", SkipReason::kRequested)
        .value("Empty", SkipReason::kEmpty)
        .value("NonFinite", SkipReason::kNonFinite);
}

void bind_inputs(nb::module_& module) {
    nb::class_<PyState>(module, "AdamWState",
                        "What AdamW remembers of a parameter: completed `step` (at least 1), first_moment, "
                        "second_moment and, exactly when AMSGrad is on, max_second_moment. Arrays are float32 of the "
                        "parameter's shape; they are kept as they are, never copied.")
        .def(
            "__init__",
            [](PyState* self, std::uint64_t step, nb::object first, nb::object second, nb::object maximum) {
                new (self) PyState{step, std::move(first), std::move(second), std::move(maximum)};
            },
            nb::arg("step"), nb::arg("first_moment"), nb::arg("second_moment"),
            nb::arg("max_second_moment").none() = nb::none())
        .def_rw("step", &PyState::step)
        .def_rw("first_moment", &PyState::first_moment)
        .def_rw("second_moment", &PyState::second_moment)
        .def_rw("max_second_moment", &PyState::max_second_moment, nb::arg().none());
    nb::class_<PyEntry>(module, "AdamWEntry",
                        "One parameter of a group: parameters (float32), gradients (float32, float16 or bfloat16 of "
                        "the same shape, still multiplied by the loss scale), state (AdamWState, or None before the "
                        "first update). Arrays are kept as they are, never copied.")
        .def(
            "__init__",
            [](PyEntry* self, nb::object parameters, nb::object gradients, nb::object state) {
                new (self) PyEntry{std::move(parameters), std::move(gradients), std::move(state)};
            },
            nb::arg("parameters"), nb::arg("gradients"), nb::arg("state").none() = nb::none())
        .def_rw("parameters", &PyEntry::parameters)
        .def_rw("gradients", &PyEntry::gradients)
        .def_rw("state", &PyEntry::state, nb::arg().none());
}

void bind_results(nb::module_& module) {
    nb::class_<PyUpdate>(module, "AdamWUpdate",
                         "Result for one entry. An unchanged one has the very objects of the input, and an absent "
                         "state stays absent; new arrays are float32 NumPy arrays over the device's own memory.")
        .def(
            "__init__",
            [](PyUpdate* self, nb::object parameters, nb::object state, bool updated) {
                new (self) PyUpdate{std::move(parameters), std::move(state), updated};
            },
            nb::arg("parameters"), nb::arg("state").none() = nb::none(), nb::arg("updated") = true)
        .def_ro("parameters", &PyUpdate::parameters)
        .def_ro("state", &PyUpdate::state, "An AdamWState, or None.")
        .def_ro("updated", &PyUpdate::updated);
    nb::class_<PyGuardedUpdate>(module, "GuardedAdamWUpdate",
                                "Result of a guarded step: entries (a list of AdamWUpdate in input order), report "
                                "(None when nothing was scanned), clip_multiplier (in [0, 1]; 1 on any skip), "
                                "skip_reason (None when the group was updated).")
        .def(
            "__init__",
            [](PyGuardedUpdate* self, nb::list entries, std::optional<GradientStatsReport> report, float clip,
               std::optional<SkipReason> reason) {
                new (self) PyGuardedUpdate{std::move(entries), std::move(report), clip, reason};
            },
            nb::arg("entries"), nb::arg("report").none() = nb::none(), nb::arg("clip_multiplier") = 1.0F,
            nb::arg("skip_reason").none() = nb::none())
        .def_ro("entries", &PyGuardedUpdate::entries)
        .def_ro("report", &PyGuardedUpdate::report)
        .def_ro("clip_multiplier", &PyGuardedUpdate::clip_multiplier)
        .def_ro("skip_reason", &PyGuardedUpdate::skip_reason);
}

}  // namespace

std::vector<const PyEntry*> entries_of(const nb::object& entries) {
    std::vector<const PyEntry*> found;
    for (nb::handle item : entries) {
        if (!nb::isinstance<PyEntry>(item)) throw nb::type_error("entries: want a sequence of AdamWEntry");
        found.push_back(nb::inst_ptr<PyEntry>(item));
    }
    return found;
}

const PyState* state_of(const nb::object& state) {
    if (state.is_none()) return nullptr;
    if (!nb::isinstance<PyState>(state)) throw nb::type_error("state: want an AdamWState or None");
    return nb::inst_ptr<PyState>(state);
}

void bind_objects(nb::module_& module) {
    bind_reports(module);
    bind_inputs(module);
    bind_results(module);
}

}  // namespace gradguard::python
