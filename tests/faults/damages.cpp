// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <limits>

#include "reference/contract/constants.h"
#include "tests/faults/check_points.h"

namespace gradguard::testing {
namespace {

using Payload = std::vector<std::vector<std::byte>>;
using Limits = std::numeric_limits<float>;

enum Word : std::size_t { kScale = 0, kSumsq = 1, kFlag = 2 };

/// Words that no summary may hold, whatever the others are; then pairs that break the rules between two words. Every
/// one leaves the remaining words as the kernel wrote them.
struct Rewrite {
    const char* name;
    std::vector<std::pair<Word, float>> words;
};

const std::vector<Rewrite>& rewrites() {
    constexpr float kInfinity = Limits::infinity();
    constexpr float kTiny = Limits::denorm_min();
    const float signalling = std::bit_cast<float>(0x7F800001U);
    const float below_one = std::bit_cast<float>(0x3F7FFFFFU);
    const float above_one = std::bit_cast<float>(0x3F800001U);
    static const std::vector<Rewrite> all = {
        {"scale -1", {{kScale, -1.0F}}},
        {"scale just below 0", {{kScale, -kTiny}}},
        {"scale NaN", {{kScale, Limits::quiet_NaN()}}},
        {"scale signalling NaN", {{kScale, signalling}}},
        {"scale inf", {{kScale, kInfinity}}},
        {"scale -inf", {{kScale, -kInfinity}}},
        {"sumsq -1", {{kSumsq, -1.0F}}},
        {"sumsq just below 0", {{kSumsq, -kTiny}}},
        {"sumsq NaN", {{kSumsq, Limits::quiet_NaN()}}},
        {"sumsq signalling NaN", {{kSumsq, signalling}}},
        {"sumsq inf", {{kSumsq, kInfinity}}},
        {"sumsq -inf", {{kSumsq, -kInfinity}}},
        {"flag 2", {{kFlag, 2.0F}}},
        {"flag -1", {{kFlag, -1.0F}}},
        {"flag 0.5", {{kFlag, 0.5F}}},
        {"flag just above 0", {{kFlag, kTiny}}},
        {"flag just below 1", {{kFlag, below_one}}},
        {"flag just above 1", {{kFlag, above_one}}},
        {"flag NaN", {{kFlag, Limits::quiet_NaN()}}},
        {"flag inf", {{kFlag, kInfinity}}},
        {"flag the integer 1", {{kFlag, std::bit_cast<float>(1U)}}},
        {"scale 0, sumsq 1", {{kScale, 0.0F}, {kSumsq, 1.0F}}},
        {"scale -0, sumsq tiny", {{kScale, -0.0F}, {kSumsq, kTiny}}},
        {"scale > 0, sumsq 0", {{kScale, 1.0F}, {kSumsq, 0.0F}}},
        {"scale > 0, sumsq just below 1", {{kScale, kTiny}, {kSumsq, below_one}}},
        {"every word NaN",
         {{kScale, Limits::quiet_NaN()}, {kSumsq, Limits::quiet_NaN()}, {kFlag, Limits::quiet_NaN()}}},
        {"poison", {{kScale, std::bit_cast<float>(0xDBDBDBDBU)}, {kSumsq, std::bit_cast<float>(0xDBDBDBDBU)}}}};
    return all;
}

void apply(const Rewrite& rewrite, std::vector<std::byte>& summary) {
    for (const auto& [word, value] : rewrite.words) std::memcpy(summary.data() + 4 * word, &value, sizeof value);
}

}  // namespace

std::vector<Damage> damages(const Group& group) {
    std::vector<Damage> all;
    std::size_t live = 0;
    for (std::size_t entry = 0; entry < group.hosts.size(); ++entry) {
        if (group.hosts[entry].parameters.empty()) continue;
        const std::string of = " of entry " + std::to_string(entry);
        const std::size_t at = live++;
        for (const Rewrite& rewrite : rewrites()) {
            all.push_back({rewrite.name + of, entry, "summary",
                           [&rewrite, at](Payload& payload) { apply(rewrite, payload.at(at)); }});
        }
        for (std::size_t bytes = 0; bytes <= 2 * kTripleBytes; ++bytes) {
            if (bytes == kTripleBytes) continue;
            all.push_back({std::to_string(bytes) + " bytes" + of, entry, "summary",
                           [bytes, at](Payload& payload) { payload.at(at).resize(bytes); }});
        }
        all.push_back({"no summary" + of, std::nullopt, "readback",
                       [at](Payload& payload) { payload.erase(payload.begin() + static_cast<std::ptrdiff_t>(at)); }});
        all.push_back({"twice the summary" + of, std::nullopt, "readback",
                       [at](Payload& payload) { payload.push_back(payload.at(at)); }});
    }
    all.push_back({"no summaries at all", std::nullopt, "readback", [](Payload& payload) { payload.clear(); }});
    return all;
}

}  // namespace gradguard::testing
