// SPDX-License-Identifier: Apache-2.0
// `step --kernels FOLDER`: kernels that are wrong on purpose end the program as the table of exit statuses says.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using testing::Ended;
using testing::GroupBuilder;
using testing::run_program;
using testing::TemporaryFolder;

std::string planted(const std::string& fault) {
    return std::string(GRADGUARD_SOURCE_DIR) + "/property_tests/planted/ptx/" + fault;
}

Ended step_with(const std::string& kernels, std::vector<std::string> flags = {}) {
    const TemporaryFolder folder;
    const std::string group = GroupBuilder().entry("layer", {0.5F, -0.25F, 3.0F}).write(folder);
    flags.insert(flags.begin(), {"step", group, "--kernels", kernels});
    return run_program(flags);
}

TEST(KernelsFlag, TheCleanTwinIsWithinBounds) {
    const Ended ended = step_with(planted("clean-device"));
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
}

TEST(KernelsFlag, AWrongUpdateIsOutOfBoundsOnOneScreen) {
    const Ended ended = step_with(planted("epsilon-inside-root"));
    EXPECT_EQ(ended.status, 1) << ended.err;
    for (const char* part : {"layer", "parameters", "got", "want", "replay: "}) {
        EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
    }
    EXPECT_NE(ended.out.find("--kernels"), std::string::npos) << "the replay line names the kernels\n" << ended.out;
}

TEST(KernelsFlag, AnAccessOutOfBoundsIsDeviceTrouble) {
    const Ended ended = step_with(planted("index-past-end"));
    EXPECT_EQ(ended.status, 4) << ended.out;
    EXPECT_NE(ended.err.find("out of bounds"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("gradient_statistics_f32"), std::string::npos) << ended.err;
}

TEST(KernelsFlag, ADroppedBarrierIsAFindingThoughTheResultIsRight) {
    const Ended ended = step_with(planted("missing-barrier-before-16"), {"--observe", "all"});
    EXPECT_EQ(ended.status, 4) << ended.out;
    EXPECT_NE(ended.err.find("race"), std::string::npos) << ended.err;
    const Ended unwatched = step_with(planted("missing-barrier-before-16"), {"--observe", "none"});
    EXPECT_EQ(unwatched.status, 0) << unwatched.out << unwatched.err;
}

TEST(KernelsFlag, AFolderWithoutKernelsIsRefused) {
    const TemporaryFolder empty;
    const Ended ended = step_with(empty.path("nowhere"));
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("--kernels: want statistics.ptx or update.ptx in the folder"), std::string::npos)
        << ended.err;
}

TEST(KernelsFlag, PtxThatCannotBeLoadedIsRefusedWithItsLine) {
    const TemporaryFolder folder;
    folder.write("update.ptx",
                 ".version 8.0\n.target sm_80\n.address_size 64\n.entry adamw_f32()\n{\n frobnicate.u32;\n}\n");
    const Ended ended = step_with(folder.path(""));
    EXPECT_EQ(ended.status, 2) << ended.out << ended.err;
    EXPECT_NE(ended.err.find("frobnicate"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("update.ptx:6: "), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace gradguard
