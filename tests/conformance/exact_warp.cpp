// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exact_warp.h"

namespace gradguard::conformance {

namespace {

bool runs(std::uint32_t mask, int lane) { return ((mask >> lane) & 1) != 0; }

}  // namespace

std::uint32_t ballot(const Lanes& predicates, std::uint32_t mask) {
    std::uint32_t result = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        if (runs(mask, lane) && predicates[lane] != 0) result |= 1U << lane;
    }
    return result;
}

bool vote(VoteOp op, const Lanes& predicates, std::uint32_t mask) {
    const std::uint32_t votes = ballot(predicates, mask);
    switch (op) {
        case VoteOp::All:
            return votes == mask;
        case VoteOp::Any:
            return votes != 0;
        case VoteOp::Uni:
            return votes == mask || votes == 0;
    }
    return false;
}

std::uint32_t match_any(const Lanes& values, std::uint32_t mask, int lane) {
    std::uint32_t result = 0;
    for (int other = 0; other < kLanes; ++other) {
        if (runs(mask, other) && values[other] == values[lane]) result |= 1U << other;
    }
    return result;
}

std::uint32_t match_all(const Lanes& values, std::uint32_t mask) {
    for (int lane = 0; lane < kLanes; ++lane) {
        if (runs(mask, lane)) return match_any(values, mask, lane) == mask ? mask : 0;
    }
    return 0;
}

Bits redux(ReduxOp op, bool is_signed, const Lanes& values, std::uint32_t mask) {
    const IntFormat format{32, is_signed};
    std::optional<Bits> result;
    for (int lane = 0; lane < kLanes; ++lane) {
        if (!runs(mask, lane)) continue;
        const Bits value = values[lane] & ones(32);
        if (!result) {
            result = value;
            continue;
        }
        switch (op) {
            case ReduxOp::Add:
                result = (*result + value) & ones(32);
                break;
            case ReduxOp::Min:
                result = int_min(format, *result, value);
                break;
            case ReduxOp::Max:
                result = int_max(format, *result, value);
                break;
            case ReduxOp::And:
                result = *result & value;
                break;
            case ReduxOp::Or:
                result = *result | value;
                break;
            case ReduxOp::Xor:
                result = *result ^ value;
                break;
        }
    }
    return result.value_or(0);
}

Shuffled shuffle(ShuffleMode mode, const Lanes& values, std::uint32_t mask, int lane, Bits b, Bits c) {
    const int amount = static_cast<int>(b & 31);
    const int clamp = static_cast<int>(c & 31);
    const int segment = static_cast<int>((c >> 8) & 31);
    const int greatest_lane = (lane & segment) | (clamp & ~segment & 31);
    const int least_lane = lane & segment;
    int source = lane;
    bool in_range = false;
    switch (mode) {
        case ShuffleMode::Up:
            source = lane - amount;
            in_range = source >= greatest_lane;
            break;
        case ShuffleMode::Down:
            source = lane + amount;
            in_range = source <= greatest_lane;
            break;
        case ShuffleMode::Bfly:
            source = lane ^ amount;
            in_range = source <= greatest_lane;
            break;
        case ShuffleMode::Idx:
            source = least_lane | (amount & ~segment & 31);
            in_range = source <= greatest_lane;
            break;
    }
    if (!in_range) source = lane;
    Shuffled result;
    result.in_range = in_range;
    if (runs(mask, source)) result.value = values[source];
    return result;
}

}  // namespace gradguard::conformance
