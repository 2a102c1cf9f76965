// SPDX-License-Identifier: Apache-2.0
#include "harness/io/signal_hold.h"

#include <csignal>
#include <initializer_list>

namespace gradguard::harness {
namespace {

thread_local int holds = 0;
thread_local sigset_t mask_before;

}  // namespace

SignalHold::SignalHold() {
    if (holds++ > 0) return;
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ, SIGALRM}) sigaddset(&ending, signal);
    pthread_sigmask(SIG_BLOCK, &ending, &mask_before);
}

SignalHold::~SignalHold() {
    if (--holds == 0) pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
}

}  // namespace gradguard::harness
