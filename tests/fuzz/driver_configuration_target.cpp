// SPDX-License-Identifier: Apache-2.0
// Bytes as the configuration of the virtual driver (environment variable GRADGUARD_VDRIVER). What is accepted is told
// as JSON, which is accepted as the same.
#include "harness/vdriver/configuration.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradguard::fuzz {
namespace {

void try_text(std::string_view text) {
    std::string told;
    try {
        const vdriver::Configuration configuration = vdriver::parse_configuration(text);
        told = to_json(configuration).dump();
        configuration.observers_to_attach();
    } catch (const std::invalid_argument& error) {
        require_one_line(error.what());
        return;
    }
    require(to_json(vdriver::parse_configuration(told)).dump() == told, "a configuration that is told is accepted");
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_text(gradguard::fuzz::as_text(data, size));
    return 0;
}
