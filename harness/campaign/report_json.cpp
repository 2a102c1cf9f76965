// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/campaign/shrink_failure.h"
#include "harness/campaign/summary.h"

namespace gradguard::harness {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity.
Json number_json(double x) { return std::isfinite(x) ? Json(x) : Json(std::isnan(x) ? "nan" : "inf"); }

Json record_json(const Record& record) {
    return {{"value", number_json(record.value)},
            {"case", record.number},
            {"step", record.step},
            {"entry", record.entry},
            {"index", record.index},
            {"elements", record.elements}};
}

void add_tally(Json& json, const Tally& tally) {
    json["cases"] = tally.cases;
    json["not_applicable"] = tally.not_applicable;
    json["worst_ulp"] = number_json(tally.worst_ulp());
    json["worst_fraction_of_bound"] = number_json(tally.worst_fraction());
    Json quantities = Json::object();
    for (std::size_t q = 0; q < kQuantities; ++q) {
        const QuantityTally& quantity = tally.quantities[q];
        if (!quantity.ulp.seen && quantity.infinite == 0) continue;
        Json one = {{"worst_ulp", quantity.ulp.seen ? record_json(quantity.ulp) : Json(nullptr)},
                    {"infinite", quantity.infinite}};
        if (quantity.fraction.seen) {
            one["worst_fraction_of_bound"] = record_json(quantity.fraction);
            one["fractions"] = quantity.fractions;
        }
        quantities[std::string(to_string(static_cast<Quantity>(q)))] = one;
    }
    json["quantities"] = quantities;
}

Json failure_json(const CampaignFailure& failure) {
    const CaseSize size = size_of(failure.shrunk);
    Json facts = Json::array();
    for (const Failure& one : failure.failures) facts.push_back(describe(one));
    return {{"property", failure.property},
            {"subject", failure.subject},
            {"case_file", failure.case_file},
            {"replay", replay_command(failure.case_file, failure.subject)},
            {"case", failure.number ? Json(*failure.number) : Json(nullptr)},
            {"elements", size.elements},
            {"nonzero_gradients", size.nonzero_gradients},
            {"nonzero_values", size.nonzero_values},
            {"shrink_evaluations", failure.shrink_evaluations},
            {"shrink_steps", failure.shrink_steps},
            {"failures", facts}};
}

Json property_json(const PropertySummary& summary) {
    Json json = {{"name", summary.property->name}, {"fact", summary.property->fact}};
    add_tally(json, summary.total);
    json["coverage"] = summary.total.coverage;
    json["gaps"] = summary.gaps;
    json["subjects"] = Json::array();
    for (const PairResult* pair : summary.subjects) {
        Json subject = {{"name", pair->pair.subject}};
        add_tally(subject, pair->tally);
        json["subjects"].push_back(subject);
    }
    return json;
}

}  // namespace

std::string campaign_to_json(const CampaignResult& result, const std::vector<WorstCase>& worst) {
    Json json = {{"seed", result.seed},
                 {"cases", result.cases},
                 {"corpus_cases", result.corpus_cases},
                 {"seconds", result.seconds},
                 {"cases_per_second", result.cases_per_second()},
                 {"jobs", result.jobs},
                 {"shard", fmt::format("{}/{}", result.shard + 1, result.shards)},
                 {"elements", result.shape.elements ? Json(*result.shape.elements) : Json(nullptr)},
                 {"interrupted", result.interrupted},
                 {"ok", result.ok()},
                 {"digest", fmt::format("{:016x}", result.digest)}};
    json["failures"] = Json::array();
    for (const CampaignFailure& failure : result.failures) json["failures"].push_back(failure_json(failure));
    json["properties"] = Json::array();
    for (const PropertySummary& summary : summarize(result)) json["properties"].push_back(property_json(summary));
    json["worst_cases"] = Json::array();
    for (const WorstCase& one : worst) {
        Json entry = {{"quantity", to_string(one.quantity)},
                      {"of", one.of_bound ? "fraction_of_bound" : "ulp"},
                      {"property", one.pair->property->name},
                      {"subject", one.pair->subject}};
        entry.update(record_json(one.record));
        entry["case_file"] = one.case_file.empty() ? Json(nullptr) : Json(one.case_file);
        json["worst_cases"].push_back(entry);
    }
    return json.dump(1);
}

std::string campaign_to_junit(const CampaignResult& result) {
    std::string cases;
    std::size_t failed = 0;
    for (const PairResult& pair : result.pairs) {
        std::string problem, detail;
        for (const CampaignFailure& failure : result.failures) {
            if (failure.property != pair.pair.property->name || failure.subject != pair.pair.subject) continue;
            problem = failure.failures.empty() ? "failed" : failure.failures.front().fact;
            for (const Failure& one : failure.failures) detail += describe(one);
            detail += "replay: " + replay_command(failure.case_file, failure.subject) + "\n";
        }
        for (const std::string& gap : pair.gaps) {
            if (problem.empty()) problem = "not hit in " + std::to_string(pair.tally.cases) + " cases";
            detail += "not hit: " + gap + "\n";
        }
        cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", escaped(pair.pair.subject),
                             escaped(pair.pair.property->name));
        if (problem.empty() && pair.tally.cases == 0) {
            cases += "><skipped message=\"no case was run\"/></testcase>\n";
        } else if (problem.empty()) {
            cases += fmt::format("><system-out>{} cases, worst error {} ulp, worst fraction of a bound {}</system-out>",
                                 pair.tally.cases, short_number(pair.tally.worst_ulp()),
                                 short_number(pair.tally.worst_fraction())) +
                     "</testcase>\n";
        } else {
            ++failed;
            cases += fmt::format(">\n    <failure message=\"{}\">{}</failure>\n  </testcase>\n", escaped(problem),
                                 escaped(detail));
        }
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites>\n<testsuite name=\"gradguard check\" tests=\"{}\" failures=\"{}\" time=\"{:.3f}\">\n"
        "  <properties><property name=\"seed\" value=\"{}\"/><property name=\"cases\" value=\"{}\"/></properties>\n"
        "{}</testsuite>\n</testsuites>\n",
        result.pairs.size(), failed, result.seconds, result.seed, result.cases, cases);
}

}  // namespace gradguard::harness
