// SPDX-License-Identifier: Apache-2.0
// Bytes as a case that is carried out, as `gradguard replay` does: on the library over the virtual GPU with all
// observers, and on the oracle, which must refuse the same.
#include "harness/case/case_file.h"
#include "harness/subjects/subject.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradguard::fuzz {
namespace {

using harness::Case;
using harness::CaseTensor;
using harness::Outcome;

/// A tensor may lie anywhere in its storage, which is memory of the device then; here it is to cost no more than a
/// little.
constexpr std::uint64_t kFarthestByte = std::uint64_t{1} << 20;

bool lies_near(const CaseTensor& tensor) { return !is_readable(tensor) || tensor.layout.byte_offset < kFarthestByte; }

bool lies_near(const Case& c) {
    for (const harness::CaseEntry& entry : c.entries) {
        if (!lies_near(entry.parameters) || !lies_near(entry.gradients)) return false;
        if (!entry.state) continue;
        if (!lies_near(entry.state->first_moment) || !lies_near(entry.state->second_moment)) return false;
        if (entry.state->max_second_moment && !lies_near(*entry.state->max_second_moment)) return false;
    }
    return true;
}

Outcome step(const char* name, const Case& c) {
    const Outcome outcome = harness::make_subject(name, {"vgpu", "all"})->step(c);
    for (const harness::StepOutcome& one : outcome.steps) {
        if (one.error) require_one_line(one.error->message);
        for (const std::string& finding : one.findings) require_one_line(finding);
        require(one.inputs_changed.empty(), "inputs are not changed");
    }
    return outcome;
}

void try_text(std::string_view text) {
    Case c;
    try {
        c = harness::case_from_json(text);
    } catch (const std::invalid_argument&) {
        return;  // case_file_target.cpp looks at that
    }
    if (!lies_near(c)) return;
    const Outcome library = step("vgpu/fmad", c);
    const Outcome oracle = step("oracle", c);
    require(library.steps.size() == oracle.steps.size(), "library and oracle take as many steps");
    for (std::size_t i = 0; i < library.steps.size(); ++i) {
        const auto& got = library.steps[i].error;
        const auto& want = oracle.steps[i].error;
        require(got.has_value() == want.has_value(), "library and oracle refuse the same");
        if (got) require(got->kind == want->kind && got->entry == want->entry, "and for the same reason");
        require(library.steps[i].findings.empty(), "the library's kernels have no finding");
    }
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_text(gradguard::fuzz::as_text(data, size));
    return 0;
}
