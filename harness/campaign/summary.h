// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/campaign/campaign.h"

namespace gradguard::harness {

/// What reports say of a campaign, drawn together.

/// A property over all of its subjects.
struct PropertySummary {
    const Property* property = nullptr;
    std::vector<const PairResult*> subjects;
    Tally total;
    std::vector<std::string> gaps;  ///< "vgpu/fmad: gradients/subnormal".
};
std::vector<PropertySummary> summarize(const CampaignResult& result);

/// The subjects' names, in the order of the campaign.
std::vector<std::string> subjects_of(const CampaignResult& result);

/// Everything together.
Tally total_of(const CampaignResult& result);

/// Where a record was set.
struct WorstCase {
    Quantity quantity = Quantity::kNorm;
    bool of_bound = false;  ///< The greatest fraction of the bound; else the greatest error in ulp.
    const Pair* pair = nullptr;
    Record record;
    std::string case_file;  ///< Where it has been written; empty: nowhere.
};
/// For each quantity the case with the greatest fraction and the one with the greatest error.
std::vector<WorstCase> worst_cases(const CampaignResult& result);

/// "case 1234, step 2, entry 0, index 7".
std::string place_text(const Record& record);

/// One argument as a shell takes it: in quotes where it has to be.
std::string shell_quoted(const std::string& text);
/// The command that replays a case file, as a shell takes it.
std::string replay_command(const std::string& case_file, const std::string& subject);

/// "guarded_step.vgpu_fmad.0123456789abcdef.json": property, subject and hash_of().
std::string case_file_name(const Case& c);

/// A number for a table: three significant digits, "inf"; "-" for 0.
std::string short_number(double x);
/// "13,002".
std::string grouped_number(std::uint64_t x);

/// As one JSON object; numbers that JSON does not have are "inf" and "nan".
///
///   campaign: seed, cases, corpus_cases, seconds, cases_per_second, jobs, shard ("1/8"), elements (or null),
///             interrupted, ok, digest (Tally::digest of all), failures, properties, worst_cases (lists)
///   failure:  property, subject, case_file, replay (a command), case (its number; null for one of the corpus),
///             elements, nonzero_gradients, nonzero_values, shrink_evaluations, shrink_steps, failures (texts)
///   property: name, fact, cases, not_applicable, worst_ulp, worst_fraction_of_bound,
///             quantities (by "norm", "m", "v", "x", "p"), coverage (cases by class),
///             gaps (classes that had to be hit), subjects (the same for each)
std::string campaign_to_json(const CampaignResult& result, const std::vector<WorstCase>& worst);
/// As JUnit XML: a test case for each property and subject.
std::string campaign_to_junit(const CampaignResult& result);
/// As one HTML page that needs nothing else: tables and figures.
std::string campaign_to_html(const CampaignResult& result, const std::vector<WorstCase>& worst);

/// Text for HTML and XML; control characters that XML does not have become "?".
std::string escaped(const std::string& text);

/// Writes report.json, junit.xml, report.html and cases/*.json, each whole or not at all. Throws FileError.
void write_reports(const std::string& folder, const CampaignResult& result);
/// Makes the folder where it is missing. Throws FileError when nothing can be written there.
void require_writable_folder(const std::string& folder);

}  // namespace gradguard::harness
