// SPDX-License-Identifier: Apache-2.0
// Every row of cases.csv is a test of this program, or left_out.csv says why it is not.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gradguard::testing {
namespace {

const std::string kFolder = std::string(GRADGUARD_SOURCE_DIR) + "/property_tests/reported/";

using Row = std::vector<std::string>;

/// RFC 4180: a field in double quotes may hold commas, line ends and, doubled, quotes.
std::vector<Row> parse_csv(const std::string& text) {
    std::vector<Row> rows;
    Row row;
    std::string field;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c != '"') {
                field += c;
            } else if (i + 1 < text.size() && text[i + 1] == '"') {
                field += text[++i];
            } else {
                quoted = false;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == ',' || c == '\n') {
            row.push_back(std::move(field));
            field.clear();
            if (c == '\n') rows.push_back(std::exchange(row, {}));
        } else if (c != '\r') {
            field += c;
        }
    }
    if (!row.empty() || !field.empty()) {
        row.push_back(std::move(field));
        rows.push_back(std::move(row));
    }
    EXPECT_FALSE(quoted) << "a quoted field does not end";
    return rows;
}

/// {first field: the row} of a file with the columns `header`; an id that comes twice fails.
std::map<std::string, Row> read_rows(const std::string& name, const Row& header) {
    std::ifstream file(kFolder + name, std::ios::binary);
    EXPECT_TRUE(file) << kFolder + name;
    const std::vector<Row> all = parse_csv(std::string(std::istreambuf_iterator<char>(file), {}));
    std::map<std::string, Row> rows;
    if (all.empty() || all[0] != header) {
        ADD_FAILURE() << name << " does not have the columns it should have";
        return rows;
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_EQ(all[i].size(), header.size()) << name << ": row " << i;
        for (const std::string& field : all[i]) EXPECT_FALSE(field.empty()) << name << ": row " << i;
        EXPECT_TRUE(rows.emplace(all[i][0], all[i]).second) << name << ": " << all[i][0] << " comes twice";
    }
    return rows;
}

/// What stands before the first underscore of each test of the suites that are named after rows.
std::set<std::string> tested_ids() {
    std::set<std::string> ids;
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
        const ::testing::TestSuite& suite = *all.GetTestSuite(s);
        const std::string name = suite.name();
        if (name != "Reported" && name != "ReportedLong" && name != "ReportedGigabytes") continue;
        for (int t = 0; t < suite.total_test_count(); ++t) {
            const std::string test = suite.GetTestInfo(t)->name();
            ids.insert(test.substr(0, test.find('_')));
        }
    }
    return ids;
}

TEST(ReportedRows, EachIsATestOrLeftOutWithItsReason) {
    const auto rows = read_rows("cases.csv", {"id", "symptom", "input", "expected", "reported_in"});
    const auto left_out = read_rows("left_out.csv", {"id", "reason"});
    const std::set<std::string> tested = tested_ids();
    EXPECT_GT(rows.size(), 60U);
    for (const auto& [id, row] : rows) {
        EXPECT_NE(tested.count(id), left_out.count(id))
            << id << " (" << row.at(1) << ") "
            << (tested.count(id) != 0 ? "is tested and left out" : "is neither tested nor left out");
    }
    for (const std::string& id : tested) EXPECT_TRUE(rows.count(id)) << "no row " << id << " in cases.csv";
    for (const auto& [id, reason] : left_out) EXPECT_TRUE(rows.count(id)) << "no row " << id << " in cases.csv";
}

TEST(ReportedRows, QuotedFieldsKeepTheirCommasAndQuotes) {
    EXPECT_EQ(parse_csv("a,\"b,\"\"c\"\"\nd\",\r\ne,f,g"),
              (std::vector<Row>{{"a", "b,\"c\"\nd", ""}, {"e", "f", "g"}}));
}

}  // namespace
}  // namespace gradguard::testing
