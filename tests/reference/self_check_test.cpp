// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/self_check.h"

#include <gtest/gtest.h>
#include <cfenv>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace gradguard::reference {
namespace {

TEST(SelfCheck, ThisProcessIsSound) { EXPECT_EQ(self_check().value_or("sound"), "sound"); }

TEST(SelfCheck, ADirectedRoundingModeIsNoticed) {
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::fesetround(mode);
        const auto fault = self_check();
        std::fesetround(FE_TONEAREST);
        EXPECT_TRUE(fault.has_value()) << mode;
    }
}

#if defined(__SSE2__)
TEST(SelfCheck, FlushingSwitchedOnForTheProcessIsNoticed) {
    const unsigned before = _mm_getcsr();
    constexpr unsigned kFlushToZero = 0x8000;
    constexpr unsigned kDenormalsAreZero = 0x0040;
    for (const unsigned flag : {kFlushToZero, kDenormalsAreZero}) {
        _mm_setcsr(before | flag);
        const auto fault = self_check();
        _mm_setcsr(before);
        EXPECT_TRUE(fault.has_value()) << flag;
    }
}
#endif

}  // namespace
}  // namespace gradguard::reference
