// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradguard::harness {

/// While one lives, the signals that ask a program to end (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ, SIGALRM)
/// wait; they arrive when the last one is gone. Holds may nest. Of the calling thread only: in a program of several
/// threads the others must block these signals too, or handle them.
class SignalHold {
  public:
    SignalHold();
    ~SignalHold();
    SignalHold(const SignalHold&) = delete;
    SignalHold& operator=(const SignalHold&) = delete;
};

}  // namespace gradguard::harness
