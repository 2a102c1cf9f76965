// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/ptx_version.h"

#include <gtest/gtest.h>

#include "kernels/host/device.h"

namespace gradguard::cuda {
namespace {

std::string ptx(const std::string& version, const std::string& target) {
    return "//\n// made for .version 1.0\n\n.version " + version + "\n.target " + target + "\n.address_size 64\n";
}

TEST(PtxVersion, ADriverTakesThePtxOfItsOwnToolkitAndOlder) {
    EXPECT_EQ(highest_ptx_version(11020), (PtxVersion{7, 2}));
    EXPECT_EQ(highest_ptx_version(12000), (PtxVersion{8, 0}));
    EXPECT_EQ(highest_ptx_version(12050), (PtxVersion{8, 5}));
    EXPECT_EQ(highest_ptx_version(12060), (PtxVersion{8, 5}));
    EXPECT_EQ(highest_ptx_version(12070), (PtxVersion{8, 6}));
    EXPECT_EQ(highest_ptx_version(12090), (PtxVersion{8, 8}));
    EXPECT_EQ(highest_ptx_version(13000), (PtxVersion{9, 0}));
}

TEST(PtxVersion, NothingIsSaidOfADriverOutsideTheTable) {
    EXPECT_EQ(highest_ptx_version(10020), std::nullopt);
    EXPECT_EQ(highest_ptx_version(99000), std::nullopt);
    EXPECT_EQ(why_not_loadable(ptx("99.0", "sm_80"), 99000, {9, 0}), std::nullopt);
}

TEST(PtxVersion, TheHeaderIsReadFromTheDirectivesAndNotFromComments) {
    const auto header = read_ptx_header(ptx("8.7", "sm_90a, texmode_independent"));
    ASSERT_TRUE(header);
    EXPECT_EQ(header->version, (PtxVersion{8, 7}));
    EXPECT_EQ(header->target, "sm_90a");
    EXPECT_EQ(read_ptx_header("// .version 9.0\n// .target sm_80\n"), std::nullopt);
    EXPECT_EQ(read_ptx_header(".version 9\n.target sm_80\n"), std::nullopt);
    EXPECT_EQ(read_ptx_header(""), std::nullopt);
}

TEST(PtxVersion, PtxThatIsTooNewIsRefusedWithBothVersions) {
    EXPECT_EQ(why_not_loadable(ptx("9.0", "sm_80"), 12080, {9, 0}),
              "it is PTX 9.0, and the driver (CUDA 12.8) takes PTX up to 8.7; want a newer driver, or PTX of an older "
              "compiler");
    EXPECT_EQ(why_not_loadable(ptx("8.7", "sm_80"), 12080, {9, 0}), std::nullopt);
}

TEST(PtxVersion, PtxForALaterArchitectureIsRefusedWithBoth) {
    EXPECT_EQ(why_not_loadable(ptx("8.0", "sm_80"), 13000, {7, 5}),
              "it is compiled for sm_80, and the device has compute capability 7.5");
    EXPECT_EQ(why_not_loadable(ptx("8.0", "sm_80"), 13000, {8, 0}), std::nullopt);
    EXPECT_EQ(why_not_loadable(ptx("8.0", "sm_80"), 13000, {12, 0}), std::nullopt);
}

TEST(PtxVersion, ArchitectureSpecificPtxRunsOnThatArchitectureAlone) {
    EXPECT_EQ(why_not_loadable(ptx("8.0", "sm_90a"), 13000, {9, 0}), std::nullopt);
    EXPECT_TRUE(why_not_loadable(ptx("8.0", "sm_90a"), 13000, {10, 0}));
    EXPECT_EQ(why_not_loadable(ptx("8.8", "sm_100f"), 13000, {10, 3}), std::nullopt);
    EXPECT_TRUE(why_not_loadable(ptx("8.8", "sm_100f"), 13000, {12, 0}));
}

TEST(PtxVersion, TheKernelsOfThisBuildAreTakenByTheDriverOfTheirCompilerAndAnAmpere) {
    for (const bool contracted : {false, true}) {
        for (const char* module : {"statistics", "update"}) {
            const std::string text = KernelSource::embedded(contracted).ptx(module);
            ASSERT_TRUE(read_ptx_header(text)) << module;
            EXPECT_EQ(why_not_loadable(text, 13000, {8, 0}), std::nullopt) << module;
            EXPECT_TRUE(why_not_loadable(text, 11020, {8, 0})) << module;
        }
    }
}

}  // namespace
}  // namespace gradguard::cuda
