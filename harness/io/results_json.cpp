// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/io/results.h"

namespace gradguard::harness {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json worst(const std::optional<WorstUlp>& value) { return value ? number(value->ulp) : Json(nullptr); }

Json place(const std::optional<WorstUlp>& value) { return value ? Json(value->index) : Json(nullptr); }

Json entry_json(const EntryResult& entry, bool with_update) {
    Json json;
    json["name"] = entry.name;
    json["elements"] = entry.elements;
    if (with_update) json["step"] = entry.step;
    json["norm"] = or_null(entry.norm);
    json["share"] = or_null(entry.share);
    json["bad"] = or_null(entry.bad);
    json["first_bad"] = or_null(entry.first_bad);
    if (with_update) {
        json["max_ulp"] = {{"param", worst(entry.param)},
                           {"exp_avg", worst(entry.exp_avg)},
                           {"exp_avg_sq", worst(entry.exp_avg_sq)},
                           {"max_exp_avg_sq", worst(entry.max_exp_avg_sq)}};
        json["max_ulp_index"] = {{"param", place(entry.param)},
                                 {"exp_avg", place(entry.exp_avg)},
                                 {"exp_avg_sq", place(entry.exp_avg_sq)},
                                 {"max_exp_avg_sq", place(entry.max_exp_avg_sq)}};
    }
    return json;
}

void add_report(Json& json, const StepResult& step) {
    const bool known = step.report.has_value();
    const GradientStats stats = known ? step.report->stats : GradientStats{};
    json["total_norm"] = known ? number(stats.total_norm) : Json(nullptr);
    json["exact_norm"] = or_null(step.exact_norm);
    json["max_finite_abs"] = known ? number(stats.max_finite_abs) : Json(nullptr);
    json["all_finite"] = known ? Json(stats.all_finite) : Json(nullptr);
    json["elements"] = known ? Json(stats.elements) : Json(nullptr);
    json["tensors"] = known ? Json(stats.tensors) : Json(nullptr);
    json["gradient_scale"] = known ? number(stats.gradient_scale) : Json(nullptr);
}

Json step_json(const StepResult& step, bool with_update) {
    Json json;
    json["file"] = step.source;
    add_report(json, step);
    if (with_update) {
        json["clip_multiplier"] = number(step.clip_multiplier);
        json["skip_reason"] = step.skip_reason ? Json(std::string(to_string(*step.skip_reason))) : Json(nullptr);
    }
    json["reduction_launches"] = step.report ? step.report->reduction_launches : 0;
    if (with_update) json["update_launches"] = step.update_launches;
    json["readback_bytes"] = step.report ? step.report->readback_bytes : 0;
    json["scratch_bytes"] = step.report ? step.report->scratch_bytes : 0;
    json["within_bounds"] = step.within_bounds();
    if (!step.within_bounds()) json["failures"] = step.failures;
    json["entries"] = Json::array();
    for (const EntryResult& entry : step.entries) json["entries"].push_back(entry_json(entry, with_update));
    return json;
}

std::string text(const Json& json, int indent) {
    // A file name need not be UTF-8; JSON must be.
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string run_json(const RunResult& run, bool with_update) {
    Json json;
    json["device"] = run.device;
    json["within_bounds"] = run.within_bounds();
    json["steps"] = Json::array();
    for (const StepResult& step : run.steps) json["steps"].push_back(step_json(step, with_update));
    return text(json, 2);
}

}  // namespace

std::string step_run_to_json(const RunResult& run) { return run_json(run, true); }

std::string stats_run_to_json(const RunResult& run) { return run_json(run, false); }

std::string error_to_json(const ErrorResult& error) {
    Json json;
    json["error"]["kind"] = error.kind;
    json["error"]["entry"] = or_null(error.entry);
    json["error"]["operand"] = error.operand.empty() ? Json(nullptr) : Json(error.operand);
    json["error"]["message"] = error.message;
    return text(json, -1);
}

}  // namespace gradguard::harness
