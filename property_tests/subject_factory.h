// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/campaign/summary.h"
#include "tests/support/compiler_under_test.h"

namespace gradguard::testing {

/// The program's subjects on the virtual GPU, all observers on.
inline harness::SubjectFactory subjects() {
    return [](std::string_view name) {
        const bool own = name.starts_with("vgpu/") && compiled_by_nvrtc();
        return harness::make_subject(own ? harness::subject_compiled_by(name, "nvrtc") : name, {"vgpu", "all"});
    };
}

/// What went wrong in a campaign, with the commands that show it again; empty when nothing did.
inline std::string problems_of(const harness::CampaignResult& result) {
    std::string text;
    for (const harness::CampaignFailure& failure : result.failures) {
        text += failure.property + " on " + failure.subject + "\n";
        for (const harness::Failure& one : failure.failures) text += describe(one);
        text +=
            show(failure.shrunk) + "\nreplay: " + harness::replay_command(failure.case_file, failure.subject) + "\n";
    }
    for (const harness::PropertySummary& summary : harness::summarize(result)) {
        for (const std::string& gap : summary.gaps) text += summary.property->name + ": not hit: " + gap + "\n";
    }
    return text;
}

}  // namespace gradguard::testing
