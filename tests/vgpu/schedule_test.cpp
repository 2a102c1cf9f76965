// SPDX-License-Identifier: Apache-2.0
// What a seed picks, and that the same seed picks the same.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

/// Each thread writes its number to a log at the place that a counter gives (a race on purpose: one lane at a time
/// increments it, so the log shows the order in which threads ran).
constexpr const char* kLogger = R"(
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %o, %w<4>;
    ld.param.u64 %o, [log];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    and.b32 %r5, %r3, 31;
    mov.u32 %r6, 0;
$again:
    setp.ne.u32 %p, %r6, %r5;
    @%p bra $skip;
    ld.volatile.global.u32 %r7, [%o];
    add.u32 %r8, %r7, 1;
    st.volatile.global.u32 [%o], %r8;
    mul.wide.u32 %w1, %r8, 4;
    add.u64 %w2, %o, %w1;
    st.global.u32 [%w2], %r4;
$skip:
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p, %r6, 32;
    @%p bra $again;
    ret;
)";

std::vector<std::uint32_t> order_of_threads(std::uint64_t seed, int launches = 1) {
    MachineOptions options;
    options.seed = seed;
    Machine machine(options);
    std::vector<std::uint32_t> zeros(8 * 64 + 1);
    const Address log = upload(machine, zeros);
    for (int i = 0; i < launches; ++i) {
        machine.write(log, zeros.data(), zeros.size() * 4);
        run(machine, ptx_module(".param .u64 log", kLogger), {{8}, {64}}, Arguments(log));
    }
    return download<std::uint32_t>(machine, log, zeros.size());
}

TEST(Schedule, SeedZeroIsThePlainOrder) {
    const auto order = order_of_threads(0);
    EXPECT_EQ(order[0], 512U);
    for (std::uint32_t i = 0; i < 512; ++i) EXPECT_EQ(order[i + 1], i);
}

TEST(Schedule, TheSameSeedGivesTheSameRunAndOthersDiffer) {
    std::set<std::vector<std::uint32_t>> orders;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const auto order = order_of_threads(seed);
        EXPECT_EQ(order, order_of_threads(seed));
        orders.insert(order);
    }
    EXPECT_EQ(orders.size(), 8U);
    EXPECT_NE(order_of_threads(3, 1), order_of_threads(3, 2)) << "the second launch is scheduled anew";
}

TEST(Schedule, BlocksRunInterleavedUnderSomeSeed) {
    bool interleaved = false;
    for (std::uint64_t seed = 1; seed < 8 && !interleaved; ++seed) {
        const auto order = order_of_threads(seed);
        std::set<std::uint32_t> finished;
        for (std::uint32_t i = 2; i < order.size(); ++i) {
            if (order[i] / 64 == order[i - 1] / 64) continue;
            finished.insert(order[i - 1] / 64);
            interleaved |= finished.count(order[i] / 64) != 0;
        }
    }
    EXPECT_TRUE(interleaved);
}

/// mul and add without a rounding: a b + c may be rounded once or twice; a b - c d in three ways.
TEST(Schedule, UnroundedPairsAreFusedByTheSeedOnly) {
    const float a = 1 + 0x1p-12F;
    const std::string pair = "mul.f32 %a_f, %a_f, %b_f;\nadd.f32 %d_f, %a_f, %c_f;";
    const auto run_pair = [&](const std::string& snippet, std::uint64_t seed) {
        MachineOptions options;
        options.seed = seed;
        return evaluate_f32(snippet, a, a, 0x1p-60F, options);
    };
    // a is overwritten by its own product here: there is nothing to fuse with.
    const auto twice = static_cast<std::uint32_t>(bits(a * a + 0x1p-60F)),
               once = static_cast<std::uint32_t>(bits(std::fma(a, a, 0x1p-60F)));
    ASSERT_NE(once, twice);
    const std::string free_pair = ".reg .f32 %t;\nmul.f32 %t, %a_f, %b_f;\nadd.f32 %d_f, %t, %c_f;";
    std::set<std::uint32_t> seen;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        EXPECT_EQ(run_pair(pair, seed), twice);
        EXPECT_EQ(run_pair(".reg .f32 %t;\nmul.rn.f32 %t, %a_f, %b_f;\nadd.f32 %d_f, %t, %c_f;", seed), twice);
        EXPECT_EQ(run_pair(".reg .f32 %t;\nmul.f32 %t, %a_f, %b_f;\nadd.rn.f32 %d_f, %t, %c_f;", seed), twice);
        EXPECT_EQ(
            run_pair(".reg .f32 %t;\nmul.f32 %t, %a_f, %b_f;\nmov.f32 %a_f, %c_f;\nadd.f32 %d_f, %t, %c_f;", seed),
            twice)
            << "an operand changed in between";
        seen.insert(run_pair(free_pair, seed));
        if (seed == 0) {
            EXPECT_EQ(*seen.begin(), twice);
        }
    }
    EXPECT_EQ(seen, (std::set<std::uint32_t>{once, twice}));
}

TEST(Schedule, DifferencesOfProductsFuseOnEitherSide) {
    const float a = 1 + 0x1p-12F, b = 1 + 0x1p-13F;
    const std::string snippet =
        ".reg .f32 %s, %t;\nmul.f32 %s, %a_f, %a_f;\nmul.f32 %t, %b_f, %b_f;\nsub.f32 %d_f, %s, %t;";
    const float left = a * a, right = b * b;
    const std::set<std::uint32_t> legal = {static_cast<std::uint32_t>(bits(left - right)),
                                           static_cast<std::uint32_t>(bits(std::fma(a, a, -right))),
                                           static_cast<std::uint32_t>(bits(std::fma(-b, b, left)))};
    std::set<std::uint32_t> seen;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        MachineOptions options;
        options.seed = seed;
        seen.insert(evaluate_f32(snippet, a, b, 0, options));
    }
    EXPECT_EQ(seen, legal);
}

TEST(Schedule, FusedPairsAreCounted) {
    const std::string body =
        ".reg .f32 %f<5>;\nmov.f32 %f1, 1.5;\nmul.f32 %f2, %f1, %f1;\nadd.f32 %f3, %f2, %f1;\nret;";
    std::set<std::uint32_t> counts;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        MachineOptions options;
        options.seed = seed;
        Machine machine(options);
        counts.insert(run(machine, ptx_module("", body), {{1}, {1}}, Arguments()).fused_pairs);
    }
    EXPECT_EQ(counts, (std::set<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace gradguard::vgpu::test
