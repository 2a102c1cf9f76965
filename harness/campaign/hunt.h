// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"
#include "harness/compare/case_judge.h"
#include "harness/subjects/subject.h"

namespace gradguard::harness {

/// What a search for worst inputs looks for.
struct HuntObjective {
    std::string name;         ///< "norm", "m/fmad", "p/overflow/nofmad", ...
    std::string description;  ///< One line.
    std::string subject;      ///< Whom the find is replayed on.
    Quantity quantity = Quantity::kNorm;
    /// Balanced inputs that fill the bound; otherwise an intermediate is driven to an end of FP32's range.
    bool fills_bound = true;
};

/// All of them, in the order in which they are hunted.
const std::vector<HuntObjective>& hunt_objectives();

struct HuntOptions {
    double seconds = 10.0;          ///< For each objective.
    std::uint64_t evaluations = 0;  ///< At most so many for each objective; 0: as many as there is time for.
    std::uint64_t seed = 0;
    SubjectOptions subject;
    std::string compiler = "ptx";  ///< Of the subject's kernels, see subject_compiled_by().
};

/// The worst that was found for one objective.
struct Find {
    HuntObjective objective;
    Case worst_case;
    std::uint64_t evaluations = 0;
    double climbed = 0.0;  ///< The score that the climb saw; for a bound the fraction that the model predicts.
    // As the subject did it:
    double error = 0.0;     ///< |result - exact|
    double bound = 0.0;     ///< Of the error on that side, for these inputs.
    double fraction = 0.0;  ///< error / bound
    double ulp = 0.0;       ///< The error in FP32 ulp of the exact result.
    std::string place;      ///< What was driven where: "learning_rate * ratio = 0x1.fp+127".
    CaseVerdict verdict;    ///< Of the replay.
};

/// Climbs over exponents and bits of the inputs on the scalar formula in process, keeps the best, and replays it on the
/// subject. The same options give the same find on every machine where `evaluations` ends the climb. Throws
/// std::invalid_argument for an unknown name, with the known ones; what make_subject throws.
Find hunt(std::string_view objective, const HuntOptions& options);

}  // namespace gradguard::harness
