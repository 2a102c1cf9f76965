// SPDX-License-Identifier: Apache-2.0
// Properties on subjects from Python, one property at a time; gradguard/_check.py makes a table of it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "harness/campaign/campaign.h"
#include "harness/campaign/shrink_failure.h"
#include "harness/case/case_file.h"
#include "harness/compare/report.h"
#include "harness/generators/recipe.h"
#include "python/src/python_subject.h"
#include "reference/contract/error.h"

namespace gradguard::python {
namespace {

using harness::Bench;
using harness::CampaignResult;
using harness::Case;
using harness::Property;
using harness::PropertyVerdict;

/// What is looked at.
struct CheckRequest {
    nb::object step;  ///< Of a Python subject; None: the subject called `name` of this program.
    std::string name;
    harness::Abilities abilities;
    std::optional<float> guard_epsilon;
    const Property* property = nullptr;
    std::uint64_t seed = 0, cases = 0, shrink_evaluations = 0;
    std::optional<std::uint64_t> elements;
    std::string folder;
};

const Property& property_named(const std::string& name) {
    const Property* const property = name.empty() ? nullptr : harness::find_property(name);
    if (property != nullptr) return *property;
    std::string known;
    for (const Property& one : harness::properties()) known += (known.empty() ? "" : ", ") + one.name;
    throw nb::value_error(("no property is named \"" + name + "\"; known are " + known).c_str());
}

/// The case with what the subject has no option for.
Case pinned(const Case& c, const std::optional<float>& guard_epsilon) {
    Case changed = c;
    if (guard_epsilon) changed.guard.epsilon = *guard_epsilon;
    return changed;
}

PropertyVerdict no_outcome(std::string got) {
    harness::Failure failure;
    failure.fact = "the subject returns an outcome, or raises one of the contract's errors";
    failure.operand = "exception";
    failure.got = std::move(got);
    failure.want = {"an outcome"};
    PropertyVerdict verdict;
    verdict.verdict.failures.push_back(std::move(failure));
    return verdict;
}

/// An exception that is none of the contract's breaks any property; Ctrl-C and sys.exit() end the check.
PropertyVerdict raised_by_subject(const nb::python_error& raised) {
    const nb::gil_scoped_acquire locked;
    if (!raised.matches(PyExc_Exception)) throw raised;
    const std::string type = nb::cast<std::string>(nb::handle(raised.type()).attr("__name__"));
    return no_outcome(type + ": " + nb::cast<std::string>(nb::str(raised.value())));
}

/// The property's own check, on cases that the subject takes.
PropertyVerdict check_taken(const Property& property, const Bench& bench, const Case& c) {
    const Property& original = *harness::find_property(property.name);
    try {
        const auto* const subject = dynamic_cast<const PythonSubject*>(&bench.subject());
        if (subject == nullptr || !subject->guard_epsilon()) return original.check(original, bench, c);
        return original.check(original, bench, pinned(c, subject->guard_epsilon()));
    } catch (const NotTaken&) {
        return {false, {}};
    } catch (const nb::python_error& raised) {
        return raised_by_subject(raised);
    } catch (const Error& error) {
        return no_outcome(error.what());  // arrays of an outcome that are no such arrays
    } catch (const nb::builtin_exception& error) {
        return no_outcome(error.what());
    }
}

/// Runs the campaign without the interpreter's lock; subjects take it where they need it.
CampaignResult run(const CheckRequest& request) {
    Property property = *request.property;
    property.check = check_taken;
    std::atomic<bool> stop = false;
    std::optional<nb::python_error> interrupt;
    harness::CampaignOptions options;
    options.seed = request.seed;
    options.cases = request.cases;
    options.subjects = {request.name};
    options.properties = {&property};
    options.shape.elements = request.elements;
    options.failure_folder = request.folder;
    options.shrink_evaluations = request.shrink_evaluations;
    options.stop = &stop;
    options.factory = [&](std::string_view name) -> std::unique_ptr<harness::Subject> {
        const nb::gil_scoped_acquire locked;
        if (request.step.is_none() || name != request.name) return harness::make_subject(name);
        return std::make_unique<PythonSubject>(request.step, request.name, request.abilities, request.guard_epsilon);
    };
    // Ctrl-C reaches the thread that called, which waits for the cases.
    options.progress = [&](const harness::CampaignProgress&) {
        const nb::gil_scoped_acquire locked;
        if (interrupt || PyErr_CheckSignals() == 0) return;
        interrupt.emplace();
        stop = true;
    };
    CampaignResult result;
    {
        const nb::gil_scoped_release unlocked;
        result = harness::run_campaign(options);
    }
    if (interrupt) throw nb::python_error(std::move(*interrupt));
    return result;
}

nb::dict failure_of(const CheckRequest& request, const harness::CampaignFailure& failure) {
    const Case smallest = pinned(failure.shrunk, request.guard_epsilon);
    const harness::CaseSize size = harness::size_of(smallest);
    nb::list texts;
    for (const harness::Failure& one : failure.failures) texts.append(nb::cast(harness::describe(one)));
    nb::dict result;
    result["failures"] = texts;
    result["case"] = harness::show(smallest);
    result["case_json"] = harness::case_to_json(smallest);
    result["elements"] = size.elements;
    result["nonzero_gradients"] = size.nonzero_gradients;
    return result;
}

nb::dict check_property(nb::object step, const std::string& name, const harness::Abilities& abilities,
                        const std::string& property, std::uint64_t seed, std::uint64_t cases,
                        std::optional<std::uint64_t> elements, std::optional<float> guard_epsilon,
                        std::uint64_t shrink_evaluations, const std::string& folder) {
    CheckRequest request{std::move(step),    name,     abilities, guard_epsilon, &property_named(property), seed, cases,
                         shrink_evaluations, elements, folder};
    const CampaignResult outcome = run(request);
    nb::dict result;
    result["applies"] = !outcome.pairs.empty();
    result["cases"] = std::uint64_t{0};
    result["asserted"] = std::uint64_t{0};
    result["worst_ulp"] = 0.0;
    result["worst_fraction_of_bound"] = 0.0;
    result["failure"] = nb::none();
    for (const harness::PairResult& pair : outcome.pairs) {
        result["cases"] = pair.tally.cases;
        result["asserted"] = pair.tally.cases - pair.tally.not_applicable;
        result["worst_ulp"] = pair.tally.worst_ulp();
        result["worst_fraction_of_bound"] = pair.tally.worst_fraction();
    }
    if (!outcome.failures.empty()) result["failure"] = failure_of(request, outcome.failures.front());
    return result;
}

harness::Abilities abilities_of(const std::string& name) { return harness::make_subject(name)->abilities(); }

void bind_case(nb::module_& module) {
    nb::class_<PyCase>(module, "Case",
                       "One step that a subject is asked for. entries: a list of AdamWEntry with new NumPy arrays, "
                       "which the subject must not write to; operation: 'guarded_step', 'unguarded_step' (one entry, "
                       "the guard means nothing) or 'statistics' (the gradients of all entries).")
        .def_ro("operation", &PyCase::operation)
        .def_ro("entries", &PyCase::entries)
        .def_ro("options", &PyCase::options)
        .def_ro("control", &PyCase::control)
        .def_ro("guard", &PyCase::guard)
        .def_ro("step", &PyCase::step, "Of the case's steps, counted from 0.")
        .def_ro("schedule_seed", &PyCase::schedule_seed);
}

}  // namespace

void bind_check(nb::module_& module) {
    bind_case(module);
    module.def("check_property", &check_property, nb::arg("step").none(), nb::arg("name"), nb::arg("abilities"),
               nb::arg("property"), nb::arg("seed"), nb::arg("cases"), nb::arg("elements").none(),
               nb::arg("guard_epsilon").none(), nb::arg("shrink_evaluations"), nb::arg("folder"),
               "Runs one property; see gradguard.check.");
    module.def("abilities_of", &abilities_of, nb::arg("name"), "What a subject of this program declares.");
    module.def(
        "properties",
        [] {
            nb::list all;
            for (const Property& property : harness::properties()) {
                all.append(nb::make_tuple(property.name, property.fact));
            }
            return all;
        },
        nb::sig("def properties() -> list[tuple[str, str]]"), "Name and fact of every property.");
    module.def(
        "subjects",
        [] {
            nb::list all;
            for (const harness::SubjectInfo& subject : harness::list_subjects()) {
                all.append(nb::make_tuple(subject.name, subject.description));
            }
            return all;
        },
        nb::sig("def subjects() -> list[tuple[str, str]]"), "Name and description of every subject of this program.");
}

}  // namespace gradguard::python
