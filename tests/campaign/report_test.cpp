// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/campaign/charts.h"
#include "harness/campaign/shrink_failure.h"
#include "harness/campaign/summary.h"
#include "harness/case/case_file.h"
#include "harness/io/file_error.h"
#include "tests/campaign/fake_subject.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

using boost::property_tree::ptree;
using harness::CampaignOptions;
using harness::CampaignResult;
using harness::Case;
using harness::Outcome;

CampaignOptions campaign(std::uint64_t cases) {
    CampaignOptions options;
    options.cases = cases;
    options.subjects = {"fake/<one>"};
    for (const harness::Property& property : harness::properties()) options.properties.push_back(&property);
    options.factory = fake_factory({});
    return options;
}

/// A campaign that ends with a failure whose text needs escaping.
CampaignResult failed_campaign(const TemporaryFolder& folder) {
    CampaignOptions options = campaign(500);
    options.factory = fake_factory([](const Case& c, Outcome& outcome) {
        if (c.entries.size() > 1) outcome.steps[0].findings.push_back("a < b && \"c\" > 'd' \x01");
    });
    options.failure_folder = folder.path("kept cases");
    return run_campaign(options);
}

ptree parsed_xml(const std::string& text) {
    std::istringstream stream(text);
    ptree tree;
    read_xml(stream, tree);
    return tree;
}

TEST(Report, JsonHasWhatItPromises) {
    const CampaignResult result = run_campaign(campaign(300));
    const auto json = nlohmann::json::parse(campaign_to_json(result, worst_cases(result)));
    EXPECT_EQ(json["seed"], 0);
    EXPECT_EQ(json["cases"], 300);
    EXPECT_GT(json["seconds"].get<double>(), 0);
    EXPECT_GT(json["cases_per_second"].get<double>(), 0);
    EXPECT_EQ(json["jobs"], 1);
    EXPECT_TRUE(json["failures"].empty());
    ASSERT_EQ(json["properties"].size(), harness::properties().size());
    std::uint64_t cases = 0;
    for (const auto& property : json["properties"]) {
        EXPECT_TRUE(property["name"].is_string());
        EXPECT_TRUE(property["worst_ulp"].is_number() || property["worst_ulp"] == "inf");
        EXPECT_TRUE(property["worst_fraction_of_bound"].is_number());
        EXPECT_TRUE(property["coverage"].is_object());
        cases += property["cases"].get<std::uint64_t>();
    }
    EXPECT_EQ(cases, 300);
}

TEST(Report, JsonOfAFailureLeadsBackToIt) {
    const TemporaryFolder folder;
    const CampaignResult result = failed_campaign(folder);
    const auto json = nlohmann::json::parse(campaign_to_json(result, {}));
    ASSERT_EQ(json["failures"].size(), 1);
    const auto& failure = json["failures"][0];
    EXPECT_EQ(failure["property"], result.failures[0].property);
    EXPECT_TRUE(std::filesystem::exists(failure["case_file"].get<std::string>()));
    const std::string replay = failure["replay"];
    EXPECT_TRUE(replay.starts_with("gradguard replay '")) << replay;  // the folder's name has a space
    EXPECT_FALSE(json["ok"].get<bool>());
}

TEST(Report, JUnitHasATestCaseForEachPropertyAndSubject) {
    const CampaignResult result = run_campaign(campaign(300));
    const ptree tree = parsed_xml(campaign_to_junit(result));
    const ptree& suite = tree.get_child("testsuites.testsuite");
    EXPECT_EQ(suite.count("testcase"), harness::properties().size());
    EXPECT_EQ(suite.get<int>("<xmlattr>.failures"), 0);
}

TEST(Report, JUnitMarksTheFailure) {
    const TemporaryFolder folder;
    const CampaignResult result = failed_campaign(folder);
    const ptree tree = parsed_xml(campaign_to_junit(result));
    EXPECT_EQ(tree.get<int>("testsuites.testsuite.<xmlattr>.failures"), 1);
    std::string failed;
    for (const auto& [name, child] : tree.get_child("testsuites.testsuite")) {
        if (name == "testcase" && child.count("failure") != 0) failed = child.get<std::string>("<xmlattr>.name");
    }
    EXPECT_EQ(failed, result.failures[0].property);
}

TEST(Report, HtmlIsWellFormedAndNeedsNoNetwork) {
    const TemporaryFolder folder;
    for (const CampaignResult& result : {run_campaign(campaign(600)), failed_campaign(folder)}) {
        const std::string html = campaign_to_html(result, worst_cases(result));
        ASSERT_NO_THROW(parsed_xml(html.substr(html.find('\n') + 1)));
        for (const char* outside : {"src=", "href=", "@import", "<script", "url("}) {
            EXPECT_EQ(html.find(outside), std::string::npos) << outside;
        }
    }
}

TEST(Report, HtmlShowsTheFailureWithItsReplayLine) {
    const TemporaryFolder folder;
    const CampaignResult result = failed_campaign(folder);
    const std::string html = campaign_to_html(result, {});
    EXPECT_NE(html.find("not within bounds"), std::string::npos);
    EXPECT_NE(html.find("gradguard replay"), std::string::npos);
    EXPECT_NE(html.find("a &lt; b &amp;&amp; &quot;c&quot;"), std::string::npos);
}

TEST(Report, WrittenWorstCasesAreThoseOfTheTable) {
    const TemporaryFolder folder;
    const CampaignResult result = run_campaign(campaign(400));
    write_reports(folder.path("report"), result);
    const auto json = nlohmann::json::parse(read_bytes(folder.path("report/report.json")));
    ASSERT_FALSE(json["worst_cases"].empty());
    for (const auto& worst : json["worst_cases"]) {
        const Case c = harness::read_case(worst["case_file"].get<std::string>());
        EXPECT_TRUE(identical(c, campaign_case(result, worst["case"].get<std::uint64_t>())));
        const auto fake = fake_factory({})(c.subject);
        const auto& property = *harness::find_property(c.property);
        const harness::SubjectFactory factory = fake_factory({});
        const auto verdict = property.check(property, harness::Bench(*fake, factory), c);
        double greatest = 0;
        for (std::size_t q = 0; q < harness::kQuantities; ++q) {
            if (to_string(static_cast<harness::Quantity>(q)) != worst["quantity"]) continue;
            const harness::Worst& measured = verdict.verdict.worst[q];
            greatest = worst["of"] == "ulp" ? measured.ulp : measured.fraction;
        }
        EXPECT_EQ(greatest, worst["value"].get<double>());
    }
}

TEST(Report, AFolderThatCannotBeMadeIsAnError) {
    const TemporaryFolder folder;
    const std::string file = folder.write("file", "");
    EXPECT_THROW(harness::require_writable_folder(file), harness::FileError);
    EXPECT_THROW(harness::require_writable_folder(file + "/below"), harness::FileError);
}

TEST(Report, ATallyDoesNotDependOnTheOrderOfMerging) {
    const CampaignResult result = run_campaign(campaign(300));
    harness::Tally forwards, backwards;
    for (std::size_t i = 0; i < result.pairs.size(); ++i) {
        forwards.merge(result.pairs[i].tally);
        backwards.merge(result.pairs[result.pairs.size() - 1 - i].tally);
    }
    EXPECT_EQ(forwards.digest, backwards.digest);
    EXPECT_EQ(forwards.coverage, backwards.coverage);
    for (std::size_t q = 0; q < harness::kQuantities; ++q) {
        EXPECT_EQ(forwards.quantities[q].ulp.number, backwards.quantities[q].ulp.number);
        EXPECT_EQ(forwards.quantities[q].fraction.number, backwards.quantities[q].fraction.number);
        EXPECT_EQ(forwards.quantities[q].errors, backwards.quantities[q].errors);
    }
}

TEST(Report, ChartsOfNothingAreEmpty) {
    EXPECT_EQ(harness::error_chart(harness::Quantity::kNorm, {}), "");
    EXPECT_EQ(harness::fraction_chart(harness::Quantity::kNorm, {}), "");
    EXPECT_EQ(harness::coverage_chart("gradients", {}), "");
}

}  // namespace
}  // namespace gradguard::testing
