// SPDX-License-Identifier: Apache-2.0
// The corpus: cases that once failed, or that show a planted fault. The right kernels pass all of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "harness/case/case_file.h"
#include "property_tests/subject_factory.h"

namespace gradguard::testing {
namespace {

const std::string kCorpus = std::string(GRADGUARD_SOURCE_DIR) + "/property_tests/corpus";

harness::CampaignOptions corpus_alone(const std::string& subject) {
    harness::CampaignOptions options;
    options.cases = 0;
    options.subjects = {subject};
    for (const harness::Property& property : harness::properties()) options.properties.push_back(&property);
    options.factory = subjects();
    options.corpus = kCorpus;
    return options;
}

class Corpus : public ::testing::TestWithParam<const char*> {};

TEST_P(Corpus, IsPassed) {
    const harness::CampaignResult result = run_campaign(corpus_alone(GetParam()));
    EXPECT_EQ(problems_of(result), "");
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
        files += entry.path().extension() == ".json" ? 1 : 0;
    }
    EXPECT_GT(files, 0);
    EXPECT_EQ(result.corpus_cases, files);
}

INSTANTIATE_TEST_SUITE_P(Each, Corpus, ::testing::Values("vgpu/fmad", "vgpu/nofmad", "oracle"),
                         [](const auto& subject) {
                             std::string name = subject.param;
                             for (char& letter : name) {
                                 if (letter == '/') letter = '_';
                             }
                             return name;
                         });

TEST(Corpus, FilesAreInTheFormThatIsWritten) {
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
        if (entry.path().extension() != ".json") continue;
        const std::string path = entry.path().string();
        std::ifstream file(path, std::ios::binary);
        const std::string text(std::istreambuf_iterator<char>(file), {});
        EXPECT_EQ(text, harness::case_to_json(harness::read_case(path))) << path;
    }
}

}  // namespace
}  // namespace gradguard::testing
