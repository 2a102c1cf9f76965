// SPDX-License-Identifier: Apache-2.0
// What observers are told, and that watching changes nothing.
#include <gtest/gtest.h>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

struct SeenAccess {
    std::uint32_t line;
    Space space;
    AccessKind kind;
    std::uint32_t bytes;
    std::uint32_t mask;
    Address first;

    bool operator==(const SeenAccess&) const = default;
};

class Recorder : public Observer {
  public:
    void launch_begin(Observed& launch) override {
        launch_ = &launch;
        kernel = launch.kernel();
    }
    void block_begin(std::uint64_t) override { ++blocks_begun; }
    void block_end(std::uint64_t) override { ++blocks_ended; }
    void memory(const MemoryEvent& event) override {
        const auto lane = static_cast<unsigned>(std::countr_zero(event.mask));
        accesses.push_back({launch_->place(event.instruction).ptx_line, event.space, event.kind, event.lane_bytes,
                            event.mask, event.addresses[lane]});
    }
    void barrier(const BarrierEvent& event) override {
        ++barrier_arrivals;
        EXPECT_EQ(event.mask, event.alive);
        EXPECT_TRUE(event.aligned);
    }
    void barrier_complete(std::uint64_t, std::uint32_t) override { ++barriers; }
    void branch(const BranchEvent& event) override { divergent += event.taken != 0 && event.taken != event.mask; }
    void fence(const FenceEvent& event) override { fence_mask = event.mask; }
    void launch_end(const LaunchStats& stats) override { lanes = stats.counters.lane_instructions; }
    void allocated(Address, std::uint64_t bytes) override { allocated_bytes += bytes; }
    void freed(Address) override { ++frees; }

    Observed* launch_ = nullptr;
    std::string kernel;
    std::vector<SeenAccess> accesses;
    int blocks_begun = 0, blocks_ended = 0, barrier_arrivals = 0, barriers = 0, divergent = 0, frees = 0;
    std::uint32_t fence_mask = 0;
    std::uint64_t lanes = 0, allocated_bytes = 0;
};

constexpr const char* kBody = R"(.reg .pred %p;
.shared .align 8 .b8 box[512];
.reg .b32 %r<9>;
.reg .b64 %o, %w<5>;
.reg .f32 %f<5>;
ld.param.u64 %o, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %w1, %r1, 8;
add.u64 %o, %o, %w1;
setp.lt.u32 %p, %r1, 3;
@%p st.global.v2.u32 [%o], {%r1, %r1};
mov.u32 %r2, box;
st.shared.u16 [%r2+2], %r1;
membar.gl;
bar.sync 0;
@!%p bra $end;
ld.u32 %r3, [%o+4];
$end:
ret;)";

TEST(Observers, AreToldOfEveryAccessBarrierBranchAndFence) {
    Machine machine;
    Recorder recorder;
    machine.attach(&recorder);
    const Address out = machine.allocate(320);
    const LaunchStats stats = run(machine, ptx_module(".param .u64 out", kBody), {{1}, {40}}, Arguments(out));
    machine.free(out);
    machine.detach(&recorder);
    machine.free(machine.allocate(8));
    EXPECT_EQ(recorder.kernel, "k");
    EXPECT_EQ(recorder.blocks_begun, 1);
    EXPECT_EQ(recorder.blocks_ended, 1);
    EXPECT_EQ(recorder.barrier_arrivals, 2);
    EXPECT_EQ(recorder.barriers, 1);
    EXPECT_EQ(recorder.divergent, 1);
    EXPECT_EQ(recorder.fence_mask, 0xFFU) << "the second warp has 8 threads";
    EXPECT_EQ(recorder.lanes, stats.counters.lane_instructions);
    EXPECT_EQ(recorder.allocated_bytes, 320U);
    EXPECT_EQ(recorder.frees, 1);
    const std::uint32_t first_line = 7;  // of the body
    const std::vector<SeenAccess> wanted = {
        {first_line + 10, Space::Global, AccessKind::Store, 8, 7, out},
        {first_line + 12, Space::Shared, AccessKind::Store, 2, 0xFFFFFFFF, 2},
        {first_line + 12, Space::Shared, AccessKind::Store, 2, 0xFF, 2},
        {first_line + 16, Space::Generic, AccessKind::Load, 4, 7, out + 4},
    };
    std::vector<SeenAccess> seen = recorder.accesses;
    ASSERT_EQ(seen.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_TRUE(seen[i].line == wanted[i].line && seen[i] == wanted[i]) << i << " line " << seen[i].line;
}

TEST(Observers, ChangeNeitherResultsNorCounts) {
    const auto once = [](bool watched) {
        Machine machine;
        Recorder recorder;
        if (watched) machine.attach(&recorder);
        const Address out = upload(machine, std::vector<std::uint32_t>(80, 0));
        const LaunchStats stats = run(machine, ptx_module(".param .u64 out", kBody), {{1}, {40}}, Arguments(out));
        return std::pair(stats.counters.lane_instructions, download<std::uint32_t>(machine, out, 80));
    };
    EXPECT_EQ(once(true), once(false));
}

TEST(Observers, SeeTheAccessThatEndsALaunchAndItsEnd) {
    Machine machine;
    Recorder recorder;
    machine.attach(&recorder);
    const Address out = machine.allocate(16);
    fault_of(machine, ptx_module(".param .u64 out", kBody), {{1}, {40}}, Arguments(out));
    ASSERT_EQ(recorder.accesses.size(), 1U);
}

TEST(Observers, CanReportFindingsWhichAreFolded) {
    class Reporter : public Observer {
      public:
        void launch_begin(Observed& launch) override { launch_ = &launch; }
        void memory(const MemoryEvent& event) override {
            Finding finding;
            finding.place = launch_->place(event.instruction);
            launch_->report(finding);
        }

      private:
        Observed* launch_ = nullptr;
    };
    Machine machine;
    Reporter reporter;
    machine.attach(&reporter);
    run(machine, ptx_module(".param .u64 out", kBody), {{1}, {40}}, Arguments(machine.allocate(320)));
    ASSERT_EQ(machine.findings().size(), 3U);
    EXPECT_EQ(machine.findings()[1].count, 2U);
}

}  // namespace
}  // namespace gradguard::vgpu::test
