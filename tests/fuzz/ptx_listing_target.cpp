// SPDX-License-Identifier: Apache-2.0
// Bytes as PTX for `gradguard ptx FILE`, which goes on after what it refuses.
#include "harness/vgpu/error.h"
#include "harness/vgpu/module.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/cli/ptx_refusals.h"

namespace gradguard::fuzz {
namespace {

bool loads(std::string_view text) {
    try {
        vgpu::Module::load(text, "fuzz.ptx");
        return true;
    } catch (const vgpu::PtxError&) {
        return false;
    }
}

void try_text(std::string_view text) {
    const tools::ReadModule read = tools::read_module(std::string(text), "fuzz.ptx", false);
    for (const tools::PtxRefusal& refusal : read.refusals) {
        require_one_line(refusal.message);
        require(refusal.line >= 1, "a refusal has a line");
    }
    require(read.syntax != nullptr || !read.refusals.empty(), "what makes no sense is refused");
    require(loads(text) == read.refusals.empty(), "the listing refuses what loading refuses");
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_text(gradguard::fuzz::as_text(data, size));
    return 0;
}
