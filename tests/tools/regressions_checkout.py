# SPDX-License-Identifier: Apache-2.0
"""For the tests of the regression runner: a checkout that holds the runner and little else, and runs of it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = "tools/run_gradient_guard_regressions.py"

# Runs the runner with the commands that the test wants, in place of a suite's.
DRIVER = """
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, {tools!r})
from regressions import environment, run
from regressions.plan import Plan
environment.describe = lambda options, device: {{"device": device}}  # The tools' versions take time.
def plans_of(options, folder):
    return {plans}
{before}
sys.exit(run.main(sys.argv[1:], plans_of))
"""


def plan(name, *command, **more):
    """The text of a Plan, for the driver; `folder` in braces is the log folder."""
    words = ", ".join(repr(str(word)) for word in command)
    extra = "".join(f", {key}={value!r}" if not callable(value) else f", {key}={value()}" for key, value in more.items())
    return f"Plan({name!r}, tuple(w.replace('{{folder}}', str(folder)) for w in ({words},)){extra})"


def shell(name, text, **more):
    return plan(name, "sh", "-c", text, **more)


def snapshot(folder):
    """{path: (kind, content, time of change)} of everything below."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(folder))] = (path.read_bytes() if path.is_file() else None, status.st_mtime_ns)
    return found


def is_running(pid):
    """Whether the process runs; one that has ended and was not reaped yet does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


class RunnerTest(unittest.TestCase):
    """self.checkout: the runner by itself; self.logs: a log folder that does not exist yet."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.checkout = self.top / "checkout"
        self.logs = self.top / "logs"
        (self.checkout / "tools").mkdir(parents=True)
        shutil.copytree(ROOT / "tools/regressions", self.checkout / "tools/regressions",
                        ignore=shutil.ignore_patterns("__pycache__"))
        for file in (SCRIPT, "tools/test_results.py", "tools/nightly.py"):
            shutil.copy(ROOT / file, self.checkout / file)

    def run_script(self, *arguments, python=(), **variables):
        """The runner itself, as a user starts it. A variable of value None is not set."""
        kept = {k: v for k, v in {**os.environ, **variables}.items() if v is not None}
        return subprocess.run([sys.executable, *python, SCRIPT, *map(str, arguments)], cwd=self.checkout, env=kept,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def driver(self, plans, before=""):
        text = DRIVER.format(tools=str(self.checkout / "tools"), plans=f"[{', '.join(plans)}]",
                             before=textwrap.dedent(before))
        return [sys.executable, "-B", "-c", text]

    def run_plans(self, *plans, arguments=(), before="", wrapper=(), **variables):
        """The runner with these commands in place of a suite's; its log folder is self.logs."""
        return subprocess.run([*wrapper, *self.driver(plans, before), "--log-dir", str(self.logs), *arguments],
                              env={**os.environ, **variables}, capture_output=True, text=True)

    def interrupt(self, number, *plans):
        """Sends the signal to the runner itself as soon as a command has made the file `started` in the log folder."""
        process = subprocess.Popen([*self.driver(plans), "--log-dir", str(self.logs)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.wait_for(self.logs / "started")
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def wait_for(self, file):
        until = time.monotonic() + 20
        while not file.exists():
            self.assertLess(time.monotonic(), until, f"no {file.name} within 20 s")
            time.sleep(0.02)

    def record(self):
        return json.loads((self.logs / "results.json").read_text())

    def statuses(self):
        return [result["status"] for result in self.record()["results"]]

    def expect(self, done, code, status, *statuses):
        """Exit status, status of the run and of its commands."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual((self.record()["status"], self.statuses()), (status, list(statuses)), done.stdout + done.stderr)
        self.assertEqual([file.name for file in self.logs.glob(".results*")], [], "a temporary file was left")


SIGNALS = (signal.SIGINT, signal.SIGTERM)
