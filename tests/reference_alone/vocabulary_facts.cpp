// SPDX-License-Identifier: Apache-2.0
// Contract section 1: names, defaults and sizes; and that this process computes as the oracle supposes.
#include <cfenv>

#include "reference/contract/constants.h"
#include "reference/contract/dtype.h"
#include "reference/contract/error.h"
#include "reference/contract/options.h"
#include "reference/contract/report.h"
#include "reference/contract/tensor_layout.h"
#include "reference/fp64/option_rules.h"
#include "reference/fp64/self_check.h"
#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

void defaults() {
    const AdamWOptions options;
    GRADGUARD_CHECK(options.learning_rate == 1e-3F);
    GRADGUARD_CHECK(options.beta1 == 0.9F);
    GRADGUARD_CHECK(options.beta2 == 0.999F);
    GRADGUARD_CHECK(options.epsilon == 1e-5F);
    GRADGUARD_CHECK(options.weight_decay == 1e-4F);
    GRADGUARD_CHECK(!options.amsgrad && !options.maximize);
    GRADGUARD_CHECK(StepControl{}.gradient_scale == 1.0F && !StepControl{}.skip_update);
    GRADGUARD_CHECK(GradientGuardOptions{}.max_norm == 1.0F);
    GRADGUARD_CHECK(GradientGuardOptions{}.epsilon == 1e-6F);
    GRADGUARD_CHECK(GradientGuardOptions{}.nonfinite == NonFinitePolicy::kSkip);
    GRADGUARD_CHECK(!reference::check_options({}) && !reference::check_control({}) && !reference::check_guard({}));
}

void empty_results() {
    const GradientStats stats;
    GRADGUARD_CHECK(stats.total_norm == 0.0 && stats.max_finite_abs == 0.0F && stats.all_finite);
    GRADGUARD_CHECK(stats.elements == 0 && stats.tensors == 0);
    GRADGUARD_CHECK(GradientDecision{}.clip_multiplier == 1.0F && !GradientDecision{}.skip_update);
    const GradientStatsReport report;
    GRADGUARD_CHECK(report.reduction_launches == 0 && report.readback_bytes == 0 && report.scratch_bytes == 0);
    GRADGUARD_CHECK(report.summaries.empty());
}

void sizes() {
    GRADGUARD_CHECK(element_bytes(DType::kF32) == 4);
    GRADGUARD_CHECK(element_bytes(DType::kF16) == 2);
    GRADGUARD_CHECK(element_bytes(DType::kBF16) == 2);
    GRADGUARD_CHECK(kThreadsPerBlock == 256 && kElementsPerBlock == 1024 && kMaxReductionBlocks == 1024);
    GRADGUARD_CHECK(kTripleBytes == 12 && kTripleBytes == 4 * kTripleWords);
    GRADGUARD_CHECK(kReductionSharedBytes == 3072 && kReductionSharedBytes == kThreadsPerBlock * kTripleBytes);
}

void names() {
    GRADGUARD_CHECK(to_string(DType::kF32) == "F32" && to_string(DType::kF16) == "F16");
    GRADGUARD_CHECK(to_string(DType::kBF16) == "BF16");
    GRADGUARD_CHECK(to_string(NonFinitePolicy::kSkip) == "Skip" && to_string(NonFinitePolicy::kError) == "Error");
    GRADGUARD_CHECK(to_string(SkipReason::kRequested) == "Requested" && to_string(SkipReason::kEmpty) == "Empty");
    GRADGUARD_CHECK(to_string(SkipReason::kNonFinite) == "NonFinite");
    const std::pair<ErrorKind, std::string_view> kinds[] = {
        {ErrorKind::kInvalidOption, "InvalidOption"},
        {ErrorKind::kInvalidTensor, "InvalidTensor"},
        {ErrorKind::kShapeMismatch, "ShapeMismatch"},
        {ErrorKind::kDifferentExecutionQueue, "DifferentExecutionQueue"},
        {ErrorKind::kInvalidState, "InvalidState"},
        {ErrorKind::kStepOverflow, "StepOverflow"},
        {ErrorKind::kUnsupportedDevice, "UnsupportedDevice"},
        {ErrorKind::kInvalidSummary, "InvalidSummary"},
        {ErrorKind::kReadback, "Readback"},
        {ErrorKind::kDeviceFailure, "DeviceFailure"},
        {ErrorKind::kNonFiniteGradients, "NonFiniteGradients"}};
    for (const auto& [kind, name] : kinds) GRADGUARD_CHECK(to_string(kind) == name);
}

void errors_say_where() {
    const Error error(ErrorKind::kShapeMismatch, {.entry = 2, .operand = "first_moment"}, "want [3,4], got [4,3]");
    GRADGUARD_CHECK(std::string_view(error.what()) == "ShapeMismatch: entry 2 first_moment: want [3,4], got [4,3]");
    GRADGUARD_CHECK(error.kind() == ErrorKind::kShapeMismatch && error.site().entry == 2U);
    GRADGUARD_CHECK(error.message() == "want [3,4], got [4,3]");
    const Error option(ErrorKind::kInvalidOption, {.operand = "beta1"}, "want less");
    GRADGUARD_CHECK(std::string_view(option.what()) == "InvalidOption: beta1: want less");
    GRADGUARD_CHECK(list_to_string(std::vector<std::uint64_t>{3, 4}) == "[3,4]");
    GRADGUARD_CHECK(list_to_string(std::vector<std::int64_t>{}) == "[]");
}

void sound() {
    const auto fault = reference::self_check();
    GRADGUARD_CHECK(fault.value_or("sound") == "sound");
    reference::require_sound_arithmetic();
}

void rounding_modes_are_noticed() {
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::fesetround(mode);
        const bool noticed = reference::self_check().has_value();
        std::fesetround(FE_TONEAREST);
        GRADGUARD_CHECK(noticed);
    }
}

constexpr Fact kVocabulary[] = {
    {"the defaults are the contract's, and valid", defaults},
    {"statistics of nothing are zero, finite and unskipped", empty_results},
    {"sizes and geometry are the contract's", sizes},
    {"names are spelled as in the contract", names},
    {"an error says kind, entry and operand", errors_say_where},
};
constexpr Fact kArithmetic[] = {
    {"this process rounds to nearest even, keeps subnormals and fuses nothing", sound},
    {"another rounding mode is noticed", rounding_modes_are_noticed},
};

}  // namespace

std::span<const Fact> vocabulary_facts() { return kVocabulary; }
std::span<const Fact> arithmetic_facts() { return kArithmetic; }

}  // namespace gradguard::reference_alone
