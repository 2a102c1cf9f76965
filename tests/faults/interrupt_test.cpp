// SPDX-License-Identifier: Apache-2.0
// The program is disturbed at each system call with which it writes: interrupted, killed, out of disk. The commands
// that are left out here for their time run in interrupt_nightly.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/faults/writers.h"

namespace gradguard::testing {
namespace {

using Calls = std::vector<std::string>;

/// What an atomic file costs: counted from what it promises, not from the program.
Calls calls_of_file(std::size_t writes) {
    Calls calls = {"open"};
    calls.insert(calls.end(), writes, "write");
    for (const char* call : {"fsync", "rename", "close", "open folder", "fsync", "close"}) calls.emplace_back(call);
    return calls;
}

TEST(Interrupt, AStepsResultIsOldOrNewWhateverHappensAtAnyCall) {
    const WriteEnumeration found = disturb_every_write(writer_named("step_replaces"), write_faults());
    EXPECT_EQ(found.problems, std::vector<std::string>{});
    // The length of the header, the header, each tensor.
    constexpr std::size_t kTensors = 4;  // parameters, gradients and two moments of one entry
    EXPECT_EQ(found.calls, calls_of_file(2 + kTensors));
    // Five faults at each call, two more at each write, one at each write, fsync and opening for EINTR.
    const std::size_t writes = 2 + kTensors;
    EXPECT_EQ(found.points, 5 * found.calls.size() + 2 * writes + (writes + 2 + 1));
}

TEST(Interrupt, ACaseFileIsOldOrNewWhateverHappensAtAnyCall) {
    const WriteEnumeration found = disturb_every_write(
        writer_named("hunt"), {WriteFault::kInterrupt, WriteFault::kKill, WriteFault::kFull, WriteFault::kBroken});
    EXPECT_EQ(found.problems, std::vector<std::string>{});
    Calls calls = calls_of_file(1);
    const Calls second = calls;
    calls.insert(calls.end(), second.begin(), second.end());
    EXPECT_EQ(found.calls, calls);
}

// The enumeration can fail: what is written past the atomic file is caught.

TEST(Interrupt, AFileThatTheStepWouldNotWriteIsReported) {
    // Other bytes than those of an undisturbed run, in a file that the run is taken to write.
    Writer writer = writer_named("step_replaces");
    int runs = 0;
    writer.arguments = [&runs](const std::string& folder) {
        std::vector<std::string> words = writer_named("step_replaces").arguments(folder);
        if (runs++ > 0) words.insert(words.end(), {"--learning-rate", "0.5"});
        return words;
    };
    const WriteEnumeration found = disturb_every_write(writer, {WriteFault::kShort});
    ASSERT_FALSE(found.problems.empty());
    EXPECT_NE(found.problems.front().find("neither the old file nor the new one"), std::string::npos)
        << found.problems.front();
}

TEST(Interrupt, ATemporaryFileThatIsLeftIsReported) {
    Writer writer = writer_named("step_creates");
    writer.before[".new.safetensors.1.0.tmp"] = "left by another run";
    const WriteEnumeration found = disturb_every_write(writer, {WriteFault::kFull});
    ASSERT_FALSE(found.problems.empty());
    EXPECT_NE(found.problems.front().find("left .new.safetensors.1.0.tmp"), std::string::npos);
}

TEST(Interrupt, AWrongStatusIsReported) {
    Writer writer = writer_named("step_replaces");
    writer.status = 1;
    const WriteEnumeration found = disturb_every_write(writer, {WriteFault::kShort});
    EXPECT_EQ(found.problems.size(), 1 + found.points);  // the undisturbed run as well
}

}  // namespace
}  // namespace gradguard::testing
