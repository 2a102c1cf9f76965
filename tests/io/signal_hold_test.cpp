// SPDX-License-Identifier: Apache-2.0
#include "harness/io/signal_hold.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "harness/io/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::harness {
namespace {

volatile std::sig_atomic_t arrived = 0;

/// Counts SIGTERM while it lives.
class Counting {
  public:
    Counting() {
        arrived = 0;
        old_ = std::signal(SIGTERM, [](int) { arrived = arrived + 1; });
    }
    ~Counting() { std::signal(SIGTERM, old_); }

  private:
    void (*old_)(int);
};

TEST(SignalHold, ASignalArrivesWhenTheLastHoldIsGone) {
    const Counting counting;
    auto outer = std::make_unique<SignalHold>();
    auto inner = std::make_unique<SignalHold>();
    std::raise(SIGTERM);
    outer.reset();  // in the order of their making, not the other way round
    EXPECT_EQ(arrived, 0);
    inner.reset();
    EXPECT_EQ(arrived, 1);
    std::raise(SIGTERM);
    EXPECT_EQ(arrived, 2);
}

TEST(SignalHold, ASignalThatWasBlockedBeforeStaysBlocked) {
    const Counting counting;
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &before);
    { const SignalHold hold; }
    std::raise(SIGTERM);
    EXPECT_EQ(arrived, 0);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(arrived, 1);
}

TEST(SignalHold, AnAtomicFileHoldsThemUntilItIsGone) {
    const Counting counting;
    const testing::TemporaryFolder folder;
    {
        AtomicFile file(folder.path("x"));
        std::raise(SIGTERM);
        file.commit();
        EXPECT_EQ(arrived, 0);
    }
    EXPECT_EQ(arrived, 1);
}

TEST(SignalHold, AnAtomicFileThatCannotBeOpenedHoldsNothing) {
    const Counting counting;
    const testing::TemporaryFolder folder;
    EXPECT_ANY_THROW(AtomicFile(folder.path("none/x")));
    std::raise(SIGTERM);
    EXPECT_EQ(arrived, 1);
}

}  // namespace
}  // namespace gradguard::harness
