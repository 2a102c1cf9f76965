// SPDX-License-Identifier: Apache-2.0
// Says after all tests how many launches there were under all observers: a campaign without any proves nothing.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

class Tally : public testing::Environment {
  public:
    void TearDown() override {
        std::printf("%llu launches under all observers\n", static_cast<unsigned long long>(launches()));
    }
};

const testing::Environment* const kTally = testing::AddGlobalTestEnvironment(new Tally);

}  // namespace
}  // namespace gradguard::programs
