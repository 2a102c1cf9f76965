// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "harness/campaign/charts.h"
#include "harness/campaign/shrink_failure.h"
#include "harness/campaign/summary.h"

namespace gradguard::harness {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --paper: #ffffff; --rule: #d8dde3; --accent: #2166ac;
        --warm: #b2182b; --panel: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #9aa5b1; --paper: #14181d; --rule: #333b45; --accent: #6baed6; --warm: #f4846f;
          --panel: #1b2128; } }
body { margin: 0 auto; max-width: 1080px; padding: 2.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 2.4rem 0 .4rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .2rem; }
p { margin: .3rem 0 .8rem; max-width: 62rem; } .soft { color: var(--soft); }
.verdict { display: inline-block; padding: .1rem .6rem; border-radius: .3rem; font-weight: 600; color: var(--paper);
           background: var(--accent); } .verdict.bad { background: var(--warm); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { border-bottom: 2px solid var(--soft); white-space: nowrap; } .n { text-align: right; white-space: nowrap; }
td .soft { font-size: .92em; } tfoot td { border-bottom: none; font-weight: 600; }
code, pre { font: .85em ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: .3rem; padding: .7rem; overflow-x: auto; }
.panels { display: flex; flex-wrap: wrap; gap: .6rem 1rem; } svg { max-width: 100%; height: auto; }
svg text { fill: var(--ink); font: 11px system-ui, "DejaVu Sans", sans-serif; } svg .tick, svg .label { fill: var(--soft); }
svg .tick { font-size: 10px; } svg .count { font-size: 10px; } svg .head { font-weight: 600; font-size: 12px; }
svg .grid { stroke: var(--rule); stroke-width: .6; } svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .density { fill: var(--accent); } svg .greatest { fill: var(--warm); }
svg .bound { fill: none; stroke: var(--warm); stroke-width: 1.3; stroke-dasharray: 5 3; }
@media print { body { max-width: none; padding: 0; } }
)";

std::string code(const std::string& text) { return "<code>" + escaped(text) + "</code>"; }

std::string worst_place(const CampaignResult& result, const PropertySummary& summary) {
    Record greatest;
    std::size_t quantity = 0;
    for (const bool of_bound : {true, false}) {
        for (std::size_t q = 0; q < kQuantities; ++q) {
            const QuantityTally& tally = summary.total.quantities[q];
            const Record& record = of_bound ? tally.fraction : tally.ulp;
            if (!record.seen || (greatest.seen && record.value <= greatest.value)) continue;
            greatest = record;
            quantity = q;
        }
        if (greatest.seen) break;
    }
    if (!greatest.seen) return "-";
    const Pair& pair = result.plan->pairs()[result.plan->at(greatest.number).pair];
    return fmt::format("{}, {}, {}", to_string(static_cast<Quantity>(quantity)), escaped(pair.subject),
                       place_text(greatest));
}

std::string property_table(const CampaignResult& result, const std::vector<PropertySummary>& summaries) {
    std::string html =
        "<div class=\"wide\"><table>\n<thead><tr><th>property</th><th class=\"n\">cases</th>"
        "<th class=\"n\">asserted</th><th class=\"n\">classes hit</th><th class=\"n\">worst error, ulp</th>"
        "<th class=\"n\">worst share of bound</th><th>where</th></tr></thead>\n<tbody>\n";
    for (const PropertySummary& summary : summaries) {
        const Tally& total = summary.total;
        html += fmt::format(
            "<tr><td>{}<br/><span class=\"soft\">{}</span></td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
            "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
            code(summary.property->name), escaped(summary.property->fact), grouped_number(total.cases),
            grouped_number(total.cases - total.not_applicable), total.coverage.size(), short_number(total.worst_ulp()),
            short_number(total.worst_fraction()), worst_place(result, summary));
    }
    const Tally total = total_of(result);
    html += fmt::format(
        "</tbody>\n<tfoot><tr><td>all</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td></td></tr></tfoot></table></div>\n",
        grouped_number(total.cases), grouped_number(total.cases - total.not_applicable), total.coverage.size(),
        short_number(total.worst_ulp()), short_number(total.worst_fraction()));
    return html;
}

std::string failure_section(const CampaignResult& result, const std::vector<PropertySummary>& summaries) {
    std::string html;
    for (const CampaignFailure& failure : result.failures) {
        const CaseSize size = size_of(failure.shrunk);
        html +=
            fmt::format("<h2>Failure: {} on {}</h2>\n<p>{} Shrunk to {} elements, {} of the gradients not zero.</p>\n",
                        code(failure.property), code(failure.subject),
                        failure.number ? fmt::format("Case {} of the campaign.", *failure.number)
                                       : std::string("A case of the corpus."),
                        size.elements, size.nonzero_gradients);
        std::string text;
        for (const Failure& one : failure.failures) text += describe(one);
        html +=
            "<pre>" + escaped(text) + "\n" + escaped(replay_command(failure.case_file, failure.subject)) + "</pre>\n";
    }
    std::string gaps;
    for (const PropertySummary& summary : summaries) {
        for (const std::string& gap : summary.gaps) {
            gaps += fmt::format("<li>{}: {}</li>\n", code(summary.property->name), escaped(gap));
        }
    }
    if (!gaps.empty())
        html += "<h2>Not hit</h2>\n<p>A run of this length must hit these.</p>\n<ul>\n" + gaps + "</ul>\n";
    return html;
}

std::string panels(const Tally& total, std::string (*chart)(Quantity, const QuantityTally&)) {
    std::string html;
    for (std::size_t q = 0; q < kQuantities; ++q) {
        html += chart(static_cast<Quantity>(q), total.quantities[q]);
    }
    return html.empty() ? std::string("<p class=\"soft\">Nothing was measured.</p>\n")
                        : "<div class=\"panels\">\n" + html + "</div>\n";
}

std::string coverage_section(const Coverage& coverage) {
    std::set<std::string> groups;
    for (const auto& [name, count] : coverage) groups.insert(name.substr(0, name.find('/')));
    std::string html;
    for (const std::string& group : groups) {
        const std::string chart = coverage_chart(group, coverage);
        if (!chart.empty()) html += "<h3>" + escaped(group) + "</h3>\n" + chart;
    }
    return html.empty() ? std::string("<p class=\"soft\">No case was run.</p>\n") : html;
}

std::string worst_table(const std::vector<WorstCase>& worst) {
    if (worst.empty()) return "<p class=\"soft\">Nothing was measured.</p>\n";
    std::string html =
        "<div class=\"wide\"><table>\n<thead><tr><th>quantity</th><th>greatest</th><th class=\"n\">value</th>"
        "<th class=\"n\">elements</th><th>where</th><th>replay</th></tr></thead>\n<tbody>\n";
    for (const WorstCase& one : worst) {
        html += fmt::format(
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{} on {}, "
            "{}</td><td>{}</td></tr>\n",
            to_string(one.quantity), one.of_bound ? "share of bound" : "error, ulp", short_number(one.record.value),
            grouped_number(one.record.elements), code(one.pair->property->name), code(one.pair->subject),
            place_text(one.record),
            one.case_file.empty() ? "-" : code(replay_command(one.case_file, one.pair->subject)));
    }
    return html + "</tbody></table></div>\n";
}

std::string head_line(const CampaignResult& result) {
    std::string names;
    for (const std::string& name : subjects_of(result)) names += (names.empty() ? "" : ", ") + code(name);
    return fmt::format(
        "<p class=\"soft\">Subjects {}. Seed {}, shard {} of {}, {} cases in {:.1f} s on {} threads ({:.0f} a second), "
        "after {} from the corpus.{}</p>\n",
        names, result.seed, result.shard + 1, result.shards, grouped_number(result.cases), result.seconds, result.jobs,
        result.cases_per_second(), grouped_number(result.corpus_cases), result.interrupted ? " Interrupted." : "");
}

}  // namespace

std::string campaign_to_html(const CampaignResult& result, const std::vector<WorstCase>& worst) {
    const std::vector<PropertySummary> summaries = summarize(result);
    const Tally total = total_of(result);
    const bool ok = result.ok();
    std::string html =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<title>gradguard check</title>\n<style>";
    html += kStyle;
    html += "</style>\n</head>\n<body>\n<h1>gradguard check</h1>\n";
    html += fmt::format("<p><span class=\"verdict{}\">{}</span></p>\n", ok ? "" : " bad",
                        !ok                  ? "not within bounds"
                        : result.interrupted ? "within bounds as far as it came"
                                             : "within bounds");
    html += head_line(result) + failure_section(result, summaries);
    html +=
        "<h2>Properties</h2>\n<p>Each property holds for every case in which its preconditions are met "
        "(<em>asserted</em>). Errors are in units of the last place of the exact result in FP32; the bound is computed "
        "for the inputs at hand, and its share is taken on balanced inputs only, where it can be filled.</p>\n";
    html += property_table(result, summaries);
    html +=
        "<h2>Error against the size of the group</h2>\n<p>Each case counts with its greatest error. Darker: more "
        "cases; dots: the greatest error of a size. Errors of many ulp are legal where terms cancel, infinite ones "
        "where an intermediate overflows.</p>\n";
    html += panels(total, error_chart);
    html +=
        "<h2>Share of the bound</h2>\n<p>Each case counts with its greatest share. At 1 the bound is attained; beyond "
        "it the case fails.</p>\n";
    html += panels(total, fraction_chart);
    html += "<h2>Worst cases</h2>\n" + worst_table(worst);
    html += "<h2>Coverage</h2>\n<p>Cases in which each class occurred (logarithmic).</p>\n";
    html += coverage_section(total.coverage);
    html += "</body>\n</html>\n";
    return html;
}

}  // namespace gradguard::harness
