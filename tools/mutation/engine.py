# SPDX-License-Identifier: Apache-2.0
"""What a mutant, a verdict and a target are. The run is in runner.py, children in execute.py, the data in record.py.

A target (device.py, host.py) makes mutants of some sources and can say of each whether the tests notice it. The engine
knows nothing about kernels or compilers.

What a verdict rests on. A result is kept in the state folder under a key and is used again as long as that key is the
same and its tests are. The key is the SHA-256 of
  - the mutant: its id and diff, and
  - the files that it concerns (Target.concerns): every file whose content goes into the mutant's compiled text. A device
    mutant of adamw_math.cuh concerns all files that the update module is compiled from, and no other.
Its tests are parts of the battery (Target.battery: name of a part -> digest of the sources of that part). A killed
mutant rests on the one part that killed it: tests added elsewhere cannot bring it back. A survivor rests on the whole
battery: any new test may kill it. Compilers, the harness and the library's host code are not part of it: they have
tests of their own, and a full run that is to be written (--write) after a change of those is started with --fresh.
"""
from __future__ import annotations

import dataclasses
import difflib
import hashlib
import pathlib
from typing import Protocol

STATUSES = ("killed", "survived", "equivalent", "identical", "invalid")
DISTINCT = ("killed", "survived", "equivalent")  # what counts as a mutant; the other two are left out


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change. `original` and `mutated` are the changed lines as they stand, without what surrounds them."""
    id: str           # unique in its target, stable while the lines before it are: "cuda/update.cu:26/constant/2"
    level: str        # "cuda", "ptx" or "host"
    file: str         # path from the project's root
    line: int         # of the first changed line, from 1
    operator: str     # "arithmetic", "removed-statement", ...; a row of the report
    description: str  # "+ -> -"
    diff: str         # unified, with three lines around
    original: str
    mutated: str
    text: str         # the whole mutated file


@dataclasses.dataclass
class Verdict:
    """`status` is killed or survived from a target; the engine adds the others. `part` is the part of the battery that
    killed it, `by` the test in it. `detail`: the failure, some lines."""
    status: str
    by: str = ""
    part: str = ""
    detail: str = ""
    seconds: float = 0.0      # CPU seconds of all children, filled in by the engine
    fingerprint: str = ""     # of the compiled text, filled in by the engine


class MutationError(Exception):
    """The run cannot go on: a missing tool, a battery that fails on the unmutated sources."""


class Invalid(Exception):
    """The mutant does not compile."""


class Identical(Exception):
    """Its compiled text is that of the unmutated sources."""


class Target(Protocol):
    """What is mutated. set_up, battery and mutants are called in the main process; prepare, check_unmutated, build and
    run in a worker, which owns `folder` (emptied before prepare, removed in the end)."""
    name: str  # "device" or "host"

    def set_up(self, folder: pathlib.Path, jobs: int) -> None:
        """Builds what all workers share, under `folder`, which stays between runs. Raises MutationError."""

    def sources(self) -> list[str]:
        """All files whose mutants are counted, from the root: their hashes go into the record."""

    def battery(self) -> dict[str, str]:
        """Digest of each part of the battery by its name, in the order in which they run."""

    def mutants(self) -> list[Mutant]:
        """All, in a fixed order, no text twice."""

    def concerns(self, mutant: Mutant) -> list[str]:
        """The files (from the root) whose content goes into the mutant's compiled text."""

    def prepare(self, folder: pathlib.Path) -> None:
        """Makes a worker's folder ready."""

    def check_unmutated(self, folder: pathlib.Path) -> None:
        """Builds the unmutated sources and runs the whole battery on them; MutationError if it does not pass."""

    def build(self, mutant: Mutant, folder: pathlib.Path) -> str:
        """Compiles it into the folder; the digest of the compiled text. Raises Invalid, Identical."""

    def run(self, mutant: Mutant, folder: pathlib.Path) -> Verdict:
        """Runs the battery on what build() left in the folder, until the first failure."""


def sha256(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def file_digest(root: pathlib.Path, name: str) -> str:
    """SHA-256 of a file from the root; "absent" if it is not there."""
    path = root / name
    return sha256(path.read_bytes()) if path.is_file() else "absent"


def key_of(mutant: Mutant, concerned: dict[str, str]) -> str:
    """The name under which a result is kept. `concerned`: digest by path."""
    return sha256("\0".join([mutant.id, mutant.diff, *(f"{path}={concerned[path]}" for path in sorted(concerned))]))


def unified_diff(file: str, before: str, after: str) -> str:
    """As `diff -u` of the two texts of one file."""
    return "".join(difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{file}",
                                        f"b/{file}", n=3))
