// SPDX-License-Identifier: Apache-2.0
// Bytes as the JSON of a case. What is accepted is written and read again: identical, NaN payloads included, and the
// text is a fixed point.
#include "harness/case/case_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradguard::fuzz {
namespace {

void try_text(std::string_view text) {
    harness::Case c;
    try {
        c = harness::case_from_json(text);
    } catch (const std::invalid_argument& error) {
        require_one_line(error.what());
        return;
    }
    const std::string written = harness::case_to_json(c);
    const harness::Case again = harness::case_from_json(written);
    require(identical(c, again), "a case that was written is the case that is read");
    require(harness::case_to_json(again) == written, "the same case makes the same text");
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_text(gradguard::fuzz::as_text(data, size));
    return 0;
}
