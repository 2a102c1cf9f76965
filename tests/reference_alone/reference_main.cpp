// SPDX-License-Identifier: Apache-2.0
// The vocabulary and the FP64 oracle, tested with nothing but a C++20 compiler. One compiler call builds it:
//   c++ -std=c++20 -ffp-contract=off -fno-tree-slp-vectorize -I. tests/reference_alone/*.cpp reference/fp64/*.cpp
// Exit status 0: every fact holds. 1: one does not, or none was checked.
#include <cstdio>
#include <exception>

#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

std::uint64_t checks = 0;
std::uint64_t broken = 0;
std::uint64_t broken_of_this_fact = 0;
constexpr std::uint64_t kMostShown = 3;  // Of one fact.

}  // namespace

void check(bool holds, const char* condition, const char* file, int line) {
    ++checks;
    if (holds) return;
    ++broken;
    if (++broken_of_this_fact <= kMostShown) std::printf("%s:%d: not so: %s\n", file, line, condition);
}

namespace {

/// Whether every check of the fact held, and there was one.
bool holds(const Fact& fact) {
    const std::uint64_t checks_before = checks;
    const std::uint64_t broken_before = broken;
    broken_of_this_fact = 0;
    try {
        fact.check();
    } catch (const std::exception& error) {
        ++broken;
        std::printf("threw: %s\n", error.what());
    }
    const bool good = broken == broken_before && checks != checks_before;
    if (!good) std::printf("FAILED: %.*s\n", static_cast<int>(fact.name.size()), fact.name.data());
    return good;
}

int run() {
    std::uint64_t facts = 0;
    std::uint64_t failed = 0;
    for (const auto group : {vocabulary_facts(), arithmetic_facts(), option_facts(), coefficient_facts(), norm_facts(),
                             decision_facts(), summary_facts()}) {
        for (const Fact& fact : group) {
            ++facts;
            if (!holds(fact)) ++failed;
        }
    }
    std::printf("reference: %llu facts, %llu checks, %llu failed\n", static_cast<unsigned long long>(facts),
                static_cast<unsigned long long>(checks), static_cast<unsigned long long>(failed));
    return failed == 0 && facts != 0 ? 0 : 1;
}

}  // namespace
}  // namespace gradguard::reference_alone

int main() { return gradguard::reference_alone::run(); }
