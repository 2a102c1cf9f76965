// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>

#include "harness/case/case_file.h"
#include "harness/io/atomic_file.h"
#include "harness/io/file_error.h"

namespace gradguard::harness {
namespace {

void write_text(const std::string& path, const std::string& text) {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
}

std::string in_folder(const std::string& folder, const std::string& name) {
    return (std::filesystem::path(folder) / name).string();
}

}  // namespace

std::vector<PropertySummary> summarize(const CampaignResult& result) {
    std::vector<PropertySummary> summaries;
    for (const PairResult& pair : result.pairs) {
        if (summaries.empty() || summaries.back().property != pair.pair.property) {
            summaries.push_back({pair.pair.property, {}, {}, {}});
        }
        PropertySummary& summary = summaries.back();
        summary.subjects.push_back(&pair);
        summary.total.merge(pair.tally);
        for (const std::string& gap : pair.gaps) summary.gaps.push_back(pair.pair.subject + ": " + gap);
    }
    return summaries;
}

Tally total_of(const CampaignResult& result) {
    Tally total;
    for (const PairResult& pair : result.pairs) total.merge(pair.tally);
    return total;
}

std::vector<WorstCase> worst_cases(const CampaignResult& result) {
    std::vector<WorstCase> worst;
    for (std::size_t q = 0; q < kQuantities; ++q) {
        for (const bool of_bound : {true, false}) {
            WorstCase greatest{static_cast<Quantity>(q), of_bound, nullptr, {}, {}};
            for (const PairResult& pair : result.pairs) {
                const QuantityTally& tally = pair.tally.quantities[q];
                const std::uint64_t before = greatest.record.number;
                const bool seen = greatest.record.seen;
                greatest.record.take(of_bound ? tally.fraction : tally.ulp);
                if (greatest.record.seen && (!seen || greatest.record.number != before)) greatest.pair = &pair.pair;
            }
            if (greatest.pair != nullptr) worst.push_back(greatest);
        }
    }
    return worst;
}

std::string place_text(const Record& record) {
    std::string text = fmt::format("case {}", record.number);
    if (record.step != 0) text += fmt::format(", step {}", record.step);
    return text + fmt::format(", entry {}, index {}", record.entry, record.index);
}

std::vector<std::string> subjects_of(const CampaignResult& result) {
    std::vector<std::string> subjects;
    for (const PairResult& pair : result.pairs) {
        if (std::ranges::find(subjects, pair.pair.subject) == subjects.end()) subjects.push_back(pair.pair.subject);
    }
    return subjects;
}

std::string shell_quoted(const std::string& text) {
    if (text.find_first_of(" \t\n'\"\\$&|;<>()*?[]#~`!{}") == std::string::npos && !text.empty()) return text;
    std::string result = "'";
    for (const char letter : text) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    return result + "'";
}

std::string replay_command(const std::string& case_file, const std::string& subject) {
    const std::string command = "gradguard replay " + shell_quoted(case_file);
    return subject.empty() ? command : command + " --subject " + shell_quoted(subject);
}

std::string case_file_name(const Case& c) {
    std::string name = c.property + "." + c.subject + "." + fmt::format("{:016x}", hash_of(c)) + ".json";
    for (char& letter : name) {
        if (letter == '/' || letter == ':') letter = '_';
    }
    return name;
}

std::string short_number(double x) {
    if (x == 0.0) return "-";
    if (std::isinf(x)) return "inf";
    if (x >= 0.001 && x < 1000.0) return fmt::format("{:.3f}", x);
    return fmt::format("{:.3g}", x);
}

std::string grouped_number(std::uint64_t x) {
    std::string text = std::to_string(x);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
    return text;
}

std::string escaped(const std::string& text) {
    std::string result;
    for (const char letter : text) {
        switch (letter) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default: {
                const auto code = static_cast<unsigned char>(letter);
                result += code < 0x20 && letter != '\n' && letter != '\t' ? '?' : letter;
            }
        }
    }
    return result;
}

void require_writable_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!std::filesystem::is_directory(folder)) {
        throw FileError(folder, "cannot make this folder" + (error ? ": " + error.message() : std::string()));
    }
    const AtomicFile probe(in_folder(folder, "report.html"));  // never committed
}

void write_reports(const std::string& folder, const CampaignResult& result) {
    require_writable_folder(folder);
    std::vector<WorstCase> worst = worst_cases(result);
    if (!worst.empty()) {
        const std::string cases = in_folder(folder, "cases");
        std::error_code error;
        std::filesystem::create_directories(cases, error);  // write_case() says what is wrong
        std::map<std::uint64_t, std::string> written;       // one case may be the worst in several respects
        for (WorstCase& one : worst) {
            std::string& file = written[one.record.number];
            if (file.empty()) {
                const Case c = campaign_case(result, one.record.number);
                file = in_folder(cases, case_file_name(c));
                write_case(file, c);
            }
            one.case_file = file;
        }
    }
    write_text(in_folder(folder, "report.json"), campaign_to_json(result, worst) + "\n");
    write_text(in_folder(folder, "junit.xml"), campaign_to_junit(result));
    write_text(in_folder(folder, "report.html"), campaign_to_html(result, worst));
}

}  // namespace gradguard::harness
