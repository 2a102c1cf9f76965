// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>

#include "harness/case/case_names.h"
#include "harness/generators/drawing.h"

namespace gradguard::harness {
namespace {

/// A name is promised once a run has this many times the cases in which it is hit once: exp(-40) is the chance to miss.
constexpr std::uint64_t kCertainty = 40;

bool always(const CaseShape&) { return true; }
bool steps(const CaseShape& s) { return s.operation != Operation::kStatistics; }
bool guarded(const CaseShape& s) { return s.operation == Operation::kGuardedStep; }
bool bad(const CaseShape& s) { return bad_allowed(s); }
bool guarded_bad(const CaseShape& s) { return guarded(s) && bad_allowed(s); }
bool any_old(const CaseShape& s) { return steps(s) && s.any_bits_in_state; }
bool grouped(const CaseShape& s) { return s.operation != Operation::kUnguardedStep && s.max_entries > 1; }
bool empties(const CaseShape& s) { return s.min_elements == 0 && !s.exact_group_elements && s.max_elements <= 10000; }
bool mixed(const CaseShape& s) {
    return grouped(s) && s.max_elements > 8 &&
           (s.abilities.f32 ? 1 : 0) + (s.abilities.f16 ? 1 : 0) + (s.abilities.bf16 ? 1 : 0) > 1;
}

struct Floor {
    std::string_view name;
    std::uint64_t one_in;  ///< At most so many cases for a hit, in every shape that promises it.
    bool (*promised)(const CaseShape&);
};

/// One in how many: a quarter or less of what was counted over 20,000 cases with at most 64 and at most 4097 elements.
constexpr std::array kFloors{
    Floor{"dtype/F32", 10, [](const CaseShape& s) { return s.abilities.f32; }},
    Floor{"dtype/F16", 20, [](const CaseShape& s) { return s.abilities.f16; }},
    Floor{"dtype/BF16", 20, [](const CaseShape& s) { return s.abilities.bf16; }},
    Floor{"dtype/mixed", 40, mixed},
    Floor{"entries/one", 20, always},
    Floor{"entries/several", 20, grouped},
    Floor{"entries/none", 600, [](const CaseShape& s) { return grouped(s) && empties(s); }},
    Floor{"entries/empty first", 100, grouped},
    Floor{"entries/empty last", 100, grouped},
    Floor{"entries/empty between", 100, [](const CaseShape& s) { return grouped(s) && s.max_entries > 3; }},
    Floor{"entries/only empty", 500, empties},
    Floor{"layout/rank 0", 400, [](const CaseShape& s) { return empties(s); }},
    Floor{"layout/rank 1", 10, always},
    Floor{"layout/rank 2", 40, always},
    Floor{"layout/rank 3 or more", 80, always},
    Floor{"layout/size-1 dimension", 40, always},
    Floor{"layout/offset", 20, always},
    Floor{"gradients/zero", 20, always},
    Floor{"gradients/minus zero", 60, always},
    Floor{"gradients/subnormal", 60, always},
    Floor{"gradients/least normal", 100, always},
    Floor{"gradients/ordinary", 10, always},
    Floor{"gradients/tiny", 60, always},
    Floor{"gradients/huge", 60, always},
    Floor{"gradients/greatest", 60, always},
    Floor{"gradients/infinity", 100, bad},
    Floor{"gradients/quiet NaN", 100, bad},
    Floor{"gradients/signalling NaN", 150, bad},
    Floor{"gradients/infinite once unscaled", 200, bad},
    Floor{"scale/1", 40, always},
    Floor{"scale/3", 80, always},
    Floor{"scale/65536", 80, always},
    Floor{"scale/2^-112", 300, bad},
    Floor{"scale/2^-113", 300, bad},
    Floor{"scale/2^-127", 300, bad},
    Floor{"scale/greatest", 300, always},
    Floor{"scale/no power of two", 10, always},
    Floor{"skip/none", 10, always},
    Floor{"skip/NonFinite", 60, guarded_bad},
    Floor{"skip/Error", 200, guarded_bad},
    Floor{"skip/Requested", 200, [](const CaseShape& s) { return steps(s) && s.abilities.skips; }},
    Floor{"skip/Empty", 500, empties},
    Floor{"guard/max_norm absent", 40, guarded},
    Floor{"guard/max_norm 0", 100, guarded},
    Floor{"guard/max_norm -0", 200, guarded},
    Floor{"guard/max_norm greatest", 200, guarded},
    Floor{"options/amsgrad", 10, [](const CaseShape& s) { return steps(s) && s.abilities.amsgrad; }},
    Floor{"options/maximize", 20, [](const CaseShape& s) { return steps(s) && s.abilities.maximize; }},
    Floor{"options/learning_rate 0", 200, steps},
    Floor{"options/beta1 0", 100, steps},
    Floor{"options/beta2 0", 100, steps},
    Floor{"options/beta2 just below 1", 50, steps},
    Floor{"options/epsilon subnormal", 300, steps},
    Floor{"options/weight_decay 0", 50, steps},
    Floor{"options/weight_decay not 0", 5, steps},
    Floor{"state/absent", 20, steps},
    Floor{"state/present", 10, steps},
    Floor{"state/mixed", 40, [](const CaseShape& s) { return steps(s) && grouped(s); }},
    Floor{"state/NaN in the maximum", 300, [](const CaseShape& s) { return any_old(s) && s.abilities.amsgrad; }},
    Floor{"step/near 2^24", 80, steps},
    Floor{"step/2^32 or more", 40, steps},
    Floor{"old/zero", 20, steps},
    Floor{"old/minus zero", 60, any_old},
    Floor{"old/subnormal", 60, any_old},
    Floor{"old/least normal", 60, any_old},
    Floor{"old/ordinary", 5, steps},
    Floor{"old/huge", 60, any_old},
    Floor{"old/greatest", 60, any_old},
    Floor{"old/infinity", 80, any_old},
    Floor{"old/quiet NaN", 80, any_old},
    Floor{"old/signalling NaN", 100, any_old},
    Floor{"later/present", 10, [](const CaseShape& s) { return steps(s) && s.max_later_steps > 0; }},
    Floor{"later/three steps", 20, [](const CaseShape& s) { return steps(s) && s.max_later_steps > 1; }},
    Floor{"later/good, skip, good", 200,
          [](const CaseShape& s) { return steps(s) && s.max_later_steps > 1 && bad_allowed(s); }},
};

/// Sizes that straddle the geometry; each is promised where the group may be so large.
constexpr std::array<std::uint64_t, 15> kSizes{1,    2,    31,   32,   33,   255,  256, 257,
                                               1023, 1024, 1025, 2047, 2048, 2049, 4096};
constexpr std::uint64_t kOneInOfASize = 600;

constexpr std::array<std::string_view, 22> kInvalid{"InvalidOption learning_rate",
                                                    "InvalidOption weight_decay",
                                                    "InvalidOption beta1",
                                                    "InvalidOption beta2",
                                                    "InvalidOption epsilon",
                                                    "InvalidOption gradient_scale",
                                                    "InvalidOption max_norm",
                                                    "InvalidOption guard_epsilon",
                                                    "InvalidTensor parameters",
                                                    "InvalidTensor gradients",
                                                    "InvalidTensor first_moment",
                                                    "InvalidTensor second_moment",
                                                    "InvalidTensor max_second_moment",
                                                    "ShapeMismatch gradients",
                                                    "ShapeMismatch first_moment",
                                                    "ShapeMismatch second_moment",
                                                    "ShapeMismatch max_second_moment",
                                                    "DifferentExecutionQueue gradients",
                                                    "DifferentExecutionQueue first_moment",
                                                    "InvalidState step",
                                                    "InvalidState max_second_moment",
                                                    "StepOverflow step"};
constexpr std::uint64_t kOneInOfAnInvalid = 400;

std::vector<std::string> invalid_floor(const CaseShape& shape, std::uint64_t cases) {
    std::vector<std::string> names;
    if (cases < kCertainty * kOneInOfAnInvalid) return names;
    for (const std::string_view name : kInvalid) {
        const bool guard_only = name.ends_with("max_norm") || name.ends_with("guard_epsilon");
        const bool maximum = name.ends_with(" max_second_moment") && !name.starts_with("InvalidState");
        const bool scan = name == "InvalidOption gradient_scale" || name == "InvalidTensor gradients" ||
                          name == "DifferentExecutionQueue gradients";
        if ((guard_only && !guarded(shape)) || (maximum && !shape.abilities.amsgrad) || (!scan && !steps(shape)))
            continue;
        names.push_back("invalid/" + std::string(name));
    }
    return names;
}

}  // namespace

std::vector<std::string> coverage_floor(const CaseShape& shape, std::uint64_t cases) {
    if (shape.invalid) return invalid_floor(shape, cases);
    std::vector<std::string> names;
    // Balanced and very small groups leave too much out to promise every class.
    if (shape.balanced || shape.max_elements < 8) return names;
    for (const Floor& floor : kFloors) {
        if (cases >= kCertainty * floor.one_in && floor.promised(shape)) names.emplace_back(floor.name);
    }
    const bool any_size = !shape.exact_group_elements && shape.min_elements <= 1 && shape.max_elements <= 10000;
    for (const std::uint64_t size : kSizes) {
        if (!any_size || size > shape.max_elements || cases < kCertainty * kOneInOfASize) continue;
        names.push_back("geometry/" + std::to_string(size));
    }
    return names;
}

}  // namespace gradguard::harness
