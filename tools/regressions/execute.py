# SPDX-License-Identifier: Apache-2.0
"""Runs one command, with its output in a file, and ends all of it on time-out and interruption."""
import dataclasses
import errno
import os
import pathlib
import shlex
import signal
import subprocess
import time
from typing import Optional

from regressions import ROOT

POLL_SECONDS = 0.05
GRACE_SECONDS = 2.0  # From asking a command to end to ending it.


class Stop:
    """Remembers the first signal that asked for an end. Handlers do no more, so that no command is lost between start
    and bookkeeping; the loops look."""

    def __init__(self):
        self.signal = None

    def install(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # Started by nohup.
            signal.signal(number, self.remember)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # Where it is ignored, exit statuses are lost.

    def remember(self, number, frame):
        self.signal = self.signal or signal.Signals(number)


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: str  # passed, failed, timeout, blocked or interrupted
    reason: Optional[str]
    returncode: Optional[int]  # None when nothing was started; negative: the signal that ended it.
    elapsed_seconds: float


def has_ended(process):
    """Whether the process has ended. It is not reaped, so its group's number cannot be anybody else's yet."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(process, number):
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # All of it has ended, or belongs to another user.


def end_group(process):
    """Ends what is left of the process's group, and reaps the process: first asked, after a grace killed."""
    if not has_ended(process):
        kill_group(process, signal.SIGTERM)
        until = time.monotonic() + GRACE_SECONDS
        while not has_ended(process) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
    kill_group(process, signal.SIGKILL)
    return process.wait()


def run(plan, log, timeout, variables, stop):
    """Outcome of the plan. `log`: path of its output, written anew. Raises OSError when that cannot be written."""
    with open(log, "wb") as output:
        output.write(os.fsencode(f"$ {shlex.join(plan.command)}\n"))
        output.flush()
        if plan.missing:
            output.write(os.fsencode(f"blocked: {plan.missing}\n"))
            return Outcome("blocked", plan.missing, None, 0.0)
        started = time.monotonic()
        try:
            process = subprocess.Popen(plan.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       cwd=ROOT, env=variables, start_new_session=True)
        except OSError as error:
            return not_started(plan, error, log, output)
        cause = None
        try:
            while not has_ended(process) and cause is None:
                time.sleep(POLL_SECONDS)
                if stop.signal:
                    cause = "interrupted"
                elif time.monotonic() - started >= timeout:
                    cause = "timeout"
            ended_by_itself = has_ended(process)
        finally:
            returncode = end_group(process)
    elapsed = round(time.monotonic() - started, 3)
    if cause == "timeout" and not ended_by_itself:
        return Outcome("timeout", f"{plan.name}: not done after {timeout:g} s", returncode, elapsed)
    if cause == "interrupted" and not ended_by_itself:
        return Outcome("interrupted", f"{plan.name}: {stop.signal.name}", returncode, elapsed)
    status, reason = plan.verdict(returncode, pathlib.Path(log).read_text(errors="replace"))
    return Outcome(status, reason, returncode, elapsed)


def not_started(plan, error, log, output):
    """A tool that is not there blocks; a program that an earlier command should have made has failed to be there."""
    program = pathlib.Path(plan.command[0])
    reason = f"cannot start {program}: {error.strerror}"
    output.write(os.fsencode(reason + "\n"))
    absent = error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
    made_here = pathlib.Path(log).parent in program.parents
    return Outcome("blocked" if absent and not made_here else "failed", f"{plan.name}: {reason}", None, 0.0)
