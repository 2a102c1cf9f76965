// SPDX-License-Identifier: Apache-2.0
// Every command of the program that writes is disturbed in every way at every system call with which it does.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/faults/writers.h"

namespace gradguard::testing {
namespace {

class EveryWriter : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryWriter, LeavesEachFileOldOrNewWhateverHappensAtAnyCall) {
    const WriteEnumeration found = disturb_every_write(writer_named(GetParam()), write_faults());
    EXPECT_EQ(found.problems, std::vector<std::string>{});
    EXPECT_GE(found.points, 5 * found.calls.size());
    EXPECT_GE(found.calls.size(), 8U);
}

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const Writer& writer : writers()) all.push_back(writer.name);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Interrupt, EveryWriter, ::testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace gradguard::testing
