# SPDX-License-Identifier: Apache-2.0
"""A command to be run, and what its output means."""
import dataclasses
import pathlib
import re
from typing import Optional

import test_results

# What CMake says when it fails for the want of something, and the reason that this is.
MISSING_FOR_CMAKE = (
    (r'package\s+configuration\s+file\s+provided\s+by\s+"([\w-]+)"', "CMake finds no {0}"),
    (r"CMake Error at \S*FindPackageHandleStandardArgs\S*[^\n]*\n\s*Could NOT find (\w+)", "CMake finds no {0}"),
    (r"CMake (\S+) or higher is required\.\s+You are running version (\S+)", "wants CMake {0}, this is {1}"),
    (r"No CMAKE_CXX_COMPILER could be found", "CMake finds no C++ compiler"),
    (r"unable to find a build program corresponding to \"([^\"]+)\"", "CMake finds no build program for {0}"),
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """One command of a suite."""

    name: str  # Of its log.
    command: tuple  # Of strings.
    compiler: Optional[str] = None  # Of the kernels: nvrtc or ptx.
    missing: Optional[str] = None  # Why it cannot run here.
    # (pattern, reason): a failed command whose log has the pattern is blocked. "" is in every log.
    blocked_by: tuple = ()
    junit: Optional[pathlib.Path] = None  # The command writes its tests there; one that did not run blocks.

    def as_json(self):
        return {"command": list(self.command), "compiler": self.compiler}

    def verdict(self, returncode, log):
        """(status, reason) of the command that ended by itself with this status and this log (str)."""
        if returncode != 0:
            for pattern, reason in self.blocked_by:
                match = re.search(pattern, log, re.MULTILINE)
                if match:
                    return "blocked", reason.format(*(" ".join(group.split()) for group in match.groups()))
            how = f"exit status {returncode}" if returncode > 0 else f"ended by signal {-returncode}"
            return "failed", f"{self.name}: {how}"
        return self.judge_tests() if self.junit else ("passed", None)

    def judge_tests(self):
        """(status, reason) from the JUnit file: a test that could not run is no pass."""
        try:
            tests = test_results.read_results(self.junit)
        except (OSError, ValueError, SyntaxError) as error:  # ElementTree's ParseError is a SyntaxError.
            return "failed", f"{self.name}: cannot read {self.junit.name}: {error}"
        by = {outcome: [t for t in tests if t["outcome"] == outcome] for outcome in ("passed", "failed", "blocked")}
        if by["failed"]:
            return "failed", f"{self.name}: {len(by['failed'])} tests failed, first {by['failed'][0]['name']}"
        if by["blocked"]:
            first, count = by["blocked"][0], f"{len(by['blocked'])} of {len(tests)} tests"
            return "blocked", f"{self.name}: {count} could not run, first {first['name']}: {first['reason']}"
        if not by["passed"]:
            return "failed", f"{self.name}: no test ran"
        return "passed", None
