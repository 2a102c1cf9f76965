# SPDX-License-Identifier: Apache-2.0
"""Child processes that cannot outlive the run, nor use more than they may."""
import ctypes
import dataclasses
import os
import resource
import signal
import subprocess
import tempfile

PR_SET_PDEATHSIG = 1
MOST_MEMORY = 8 << 30    # bytes of address space of one child
SHOWN = 4000             # bytes of output that are kept, from the beginning and from the end
LIBC = ctypes.CDLL(None, use_errno=True)
_running = set()         # of this process


@dataclasses.dataclass
class Execution:
    status: int       # exit status; -N: ended by signal N
    output: str       # stdout and stderr together, its beginning and its end
    seconds: float    # CPU time of the child and its children
    late: bool        # ended because its CPU time or the time of day was up


def die_with_parent():
    """The calling process is killed when the one that started it is gone, however that ended."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kill_running():
    """Ends the children of this process with all that they started."""
    for child in list(_running):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def ends_of(file):
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= 2 * SHOWN:
        return file.read()
    beginning = file.read(SHOWN)
    file.seek(-SHOWN, os.SEEK_END)
    return beginning + b"\n...\n" + file.read()


def execute(command, cpu_seconds, cwd=None, environment=None, wall_seconds=None, memory=MOST_MEMORY):
    """Runs `command` in a session of its own until it ends, or has used `cpu_seconds` of CPU time, or has slept so long
    that `wall_seconds` are over (thirty times the CPU time and ten minutes: a deadlock, not a busy machine)."""
    wall_seconds = wall_seconds or 30 * cpu_seconds + 600

    def limits():
        die_with_parent()
        whole = max(1, int(cpu_seconds + 0.999))
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    before = children_seconds()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits)
        _running.add(child)
        slept = False
        try:
            child.wait(wall_seconds)
        except subprocess.TimeoutExpired:
            slept = True
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)  # what it left behind, too
            except ProcessLookupError:
                pass
            child.wait()
            _running.discard(child)
        text = ends_of(output).decode(errors="replace")
    late = slept or child.returncode == -signal.SIGXCPU
    return Execution(child.returncode, text, children_seconds() - before, late)

