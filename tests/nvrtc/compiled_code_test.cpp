// SPDX-License-Identifier: Apache-2.0
// What contract section 4 asks of compiled code, of everything that the compilers of this machine make of the kernels:
// every NVRTC and nvcc, with and without contraction, for both architectures, and ptxas's machine code of it.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "kernels/ptx/embedded.h"
#include "tests/nvrtc/installed.h"
#include "tests/nvrtc/tool.h"
#include "tests/support/compiled_code.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

/// ptxas's resource report for the machine code of `ptx`.
std::string report_of(const TemporaryFolder& folder, const std::string& ptx, const std::string& machine) {
    const ToolResult ran = run_tool(
        {*find_tool("ptxas"), "-v", "-arch=" + machine, "-o", folder.path("cubin"), folder.write("kernels.ptx", ptx)});
    EXPECT_EQ(ran.status, 0) << ran.output;
    return ran.output;
}

/// ptxas takes no PTX of a compiler that is newer than itself.
cuda::CudaRelease release_of_ptxas() {
    const std::string said = run_tool({*find_tool("ptxas"), "--version"}).output;
    cuda::CudaRelease release;
    const std::size_t at = said.find("release ");
    if (at == std::string::npos ||
        std::sscanf(said.c_str() + at, "release %d.%d", &release.major, &release.minor) != 2) {
        ADD_FAILURE() << "ptxas does not say its release: " << said;
    }
    return release;
}

class CompiledAnew : public ::testing::TestWithParam<Compilation> {
  protected:
    /// compute_80 code for both machines, compute_90 code for the one that runs it.
    void expect_resources(const std::string& ptx) const {
        const Compilation& c = GetParam();
        for (const char* machine : {"sm_80", "sm_90"}) {
            if (c.architecture == "compute_90" && std::string(machine) == "sm_80") continue;
            EXPECT_EQ(joined(broken_resources(c.module, report_of(folder_, ptx, machine))), "") << machine;
        }
    }
    std::string nvcc_ptx() const {
        const Compilation& c = GetParam();
        const ToolResult ran =
            run_tool({*find_tool("nvcc"), "-ptx", "-arch=" + c.architecture, "-std=c++20", "-lineinfo",
                      c.contracted ? "-fmad=true" : "-fmad=false", "-I" GRADGUARD_SOURCE_DIR,
                      GRADGUARD_SOURCE_DIR "/kernels/device/" + c.module + ".cu", "-o", folder_.path("nvcc.ptx")});
        EXPECT_EQ(ran.status, 0) << ran.output;
        return read_bytes(folder_.path("nvcc.ptx"));
    }
    std::string why_;
    TemporaryFolder folder_;
};

class NvrtcCode : public CompiledAnew {};

TEST_P(NvrtcCode, KeepsTheRules) {
    const auto installed = installed_nvrtcs(why_);
    if (installed.empty()) GTEST_SKIP() << "blocked: " << why_;
    for (const auto& nvrtc : installed) {
        const Compilation& c = GetParam();
        EXPECT_EQ(joined(broken_rules(c.module, c.contracted, c.by(*nvrtc))), "") << nvrtc->release().text();
    }
}

class NvrtcMachineCode : public CompiledAnew {};

TEST_P(NvrtcMachineCode, KeepsItsResources) {
    if (!find_tool("ptxas")) GTEST_SKIP() << "blocked: no ptxas";
    try {
        expect_resources(GetParam().by(*cuda::find_nvrtc(std::string(), release_of_ptxas())));
    } catch (const cuda::NvrtcUnavailable& error) {
        GTEST_SKIP() << "blocked: " << error.what();
    }
}

class NvccCode : public CompiledAnew {};

TEST_P(NvccCode, KeepsTheRules) {
    if (!find_tool("nvcc")) GTEST_SKIP() << "blocked: no nvcc";
    EXPECT_EQ(joined(broken_rules(GetParam().module, GetParam().contracted, nvcc_ptx())), "");
}

class NvccMachineCode : public CompiledAnew {};

TEST_P(NvccMachineCode, KeepsItsResources) {
    if (!find_tool("nvcc") || !find_tool("ptxas")) GTEST_SKIP() << "blocked: no nvcc or no ptxas";
    expect_resources(nvcc_ptx());
}

const auto kName = [](const auto& compilation) { return compilation.param.name(); };
INSTANTIATE_TEST_SUITE_P(Each, NvrtcCode, ::testing::ValuesIn(all_compilations()), kName);
INSTANTIATE_TEST_SUITE_P(Each, NvrtcMachineCode, ::testing::ValuesIn(all_compilations()), kName);
INSTANTIATE_TEST_SUITE_P(Each, NvccCode, ::testing::ValuesIn(all_compilations()), kName);
INSTANTIATE_TEST_SUITE_P(Each, NvccMachineCode, ::testing::ValuesIn(all_compilations()), kName);

TEST(PlantedMachineCode, WithLocalMemoryIsSeenInPtxassReport) {
    const auto ptxas = find_tool("ptxas");
    if (!ptxas) GTEST_SKIP() << "blocked: no ptxas";
    std::string ptx(kernels::embedded_ptx("update", "fmad"));
    // An array with indices that nobody knows before the run cannot be held in registers.
    ptx.insert(ptx.find("\tld.param"), R"(
    .local .align 4 .b8 depot[64];
    .reg .pred %w<2>;
    .reg .b32 %q<5>;
    .reg .b64 %z<6>;
    mov.u32 %q1, %tid.x;
    mov.u32 %q2, %ctaid.x;
    and.b32 %q3, %q1, 15;
    and.b32 %q4, %q2, 15;
    mul.wide.u32 %z1, %q3, 4;
    mul.wide.u32 %z2, %q4, 4;
    mov.u64 %z3, depot;
    add.s64 %z4, %z3, %z1;
    add.s64 %z5, %z3, %z2;
    st.local.u32 [%z5], %q2;
    st.local.u32 [%z4], %q1;
    ld.local.u32 %q3, [%z5];
    setp.eq.u32 %w1, %q3, 77;
    @%w1 trap;
)");
    const TemporaryFolder folder;
    const std::string said = joined(broken_resources("update", report_of(folder, ptx, "sm_80")));
    EXPECT_NE(said.find("bytes of local memory: got 64, want 0"), std::string::npos) << said;
}

}  // namespace
}  // namespace gradguard::testing
