# SPDX-License-Identifier: Apache-2.0
"""The tests that host mutants run against: tests/host in one program, linked anew for each mutant.

Everything but the library's own objects is built once, by CMake and Ninja. A mutant costs the objects that its text goes
into and one link. The program ends at its first failure; its files come in the order of the time that they take, the
cheapest first.
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess

from . import execute
from .engine import Identical, Invalid, MutationError, Verdict, file_digest, sha256

PROGRAM = "host_test"
LIBRARY = "libgradguard_host.a"
SOURCES = "kernels/host"
# Folds what means the same, so that objects of equal mutants are equal. A division by 0, which an optimiser may drop, and
# a look into an empty optional or beside a vector end the program.
LEVEL = ("-O1", "-g0", "-w", "-D_GLIBCXX_ASSERTIONS", "-fsanitize=integer-divide-by-zero",
         "-fsanitize-undefined-trap-on-error")
LINKERS = ("lld", "gold")     # faster than the default one, where they are
LEAST_LIMIT, MOST_LIMIT = 10, 30  # CPU seconds; five times what the unmutated library takes, within these
MEMORY = 4 << 30
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
STANDARD = re.compile(r"^#include <[a-z_]+>", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+)", re.MULTILINE)
STARTED = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)


def checked(command, what, cwd=None):
    """Output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, preexec_fn=execute.die_with_parent)
    if done.returncode != 0:
        raise MutationError(f"{what}: {shlex.join(map(str, command))}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def included(root, file, texts, seen=None):
    """The file and all project headers that go into it. `texts`: content by path, for files that have been read."""
    seen = set() if seen is None else seen
    if file not in seen and (root / file).is_file():
        seen.add(file)
        for name in INCLUDE.findall(texts.get(file) or (root / file).read_text()):
            included(root, name, texts, seen)
    return seen


class Battery:
    """`folder`: what is built stays there. `texts`: the sources to be mutated, by path from `root`."""

    def __init__(self, root, folder, texts, jobs):
        self.root, self.texts, self.shared = root, texts, folder
        self.build_folder = folder / "build"
        self._build(jobs)
        self.compiled = self._compile_commands()
        self.inputs = {unit: included(root, unit, texts) for unit in self.compiled}
        self.parts, self.part_of, self.limit = {}, {}, MOST_LIMIT
        self.link_line = self._link_line()
        self.standard = folder / "standard.h"
        self._precompile()
        self.base = {}
        self._make_base()
        self._order_parts()

    # What is built once.

    def _build(self, jobs):
        if not (self.build_folder / "build.ninja").is_file():
            shutil.rmtree(self.build_folder, ignore_errors=True)
            launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
            checked(["cmake", "-S", self.root, "-B", self.build_folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                     "-DGRADGUARD_BENCH=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *launcher], "configuring the battery")
        checked(["ninja", "-C", self.build_folder, f"-j{jobs}", PROGRAM], "building the battery")
        changed = [file for file, text in self.texts.items() if (self.root / file).read_text() != text]
        if changed:
            raise MutationError(f"{', '.join(changed)} changed while the battery was built: start again")

    def _compile_commands(self):
        """Compiler and options of each source of the library, without the names of source and object."""
        found = {}
        for entry in json.loads((self.build_folder / "compile_commands.json").read_text()):
            file = pathlib.Path(entry["file"])
            name = str(file.relative_to(self.root)) if file.is_relative_to(self.root) else ""
            if name not in self.texts:
                continue
            words = shlex.split(entry["command"])
            words = words[1:] if pathlib.Path(words[0]).name == "ccache" else words
            del words[words.index("-o"):words.index("-o") + 2]
            del words[words.index("-c"):words.index("-c") + 2]
            found[name] = words
        if not found:
            raise MutationError(f"the build has no source of {SOURCES}")
        return found

    def _link_line(self):
        line = checked(["ninja", "-C", self.build_folder, "-t", "commands", PROGRAM], "asking for the link").splitlines()[-1]
        command = next((part for part in line.split(" && ") if LIBRARY in part and " -o " in part), None)
        if command is None:
            raise MutationError(f"no link of {PROGRAM} with {LIBRARY} in: {line}")
        words = shlex.split(command)
        linker = next((name for name in LINKERS if shutil.which(f"ld.{name}")), None)
        return words + ([f"-fuse-ld={linker}"] if linker else [])

    def _precompile(self):
        """The standard headers of all sources, which take most of a compilation."""
        files = set().union(*self.inputs.values())
        names = {name for file in files for name in STANDARD.findall((self.root / file).read_text())}
        self.standard.write_text("".join(f"{name}\n" for name in sorted(names)))
        command = [*next(iter(self.compiled.values())), *LEVEL, "-x", "c++-header", str(self.standard)]
        checked([*command, "-o", f"{self.standard}.gch"], "precompiling the standard headers", self.build_folder)

    def _make_base(self):
        tree = self.shared / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        self.write_tree(tree)
        for unit in self.compiled:
            self.base[unit] = tree / (unit + ".o")
            self.compile(unit, tree, self.base[unit])

    def _order_parts(self):
        """Runs the tests of the unmutated library once, for the time that each file of tests takes."""
        program = self.shared / PROGRAM
        self.link(self.base, program)
        listing, times = self.shared / "tests.json", self.shared / "times.json"
        checked([program, "--gtest_list_tests", f"--gtest_output=json:{listing}"], "listing the tests", self.root)
        before = execute.children_seconds()
        checked([program, "--gtest_brief=1", f"--gtest_output=json:{times}"],
                "the tests do not pass on the unmutated library", self.root)
        self.limit = min(MOST_LIMIT, max(LEAST_LIMIT, int(5 * (execute.children_seconds() - before))))
        seconds = {}
        for suite in json.loads(times.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                seconds[f"{suite['name']}.{test['name']}"] = float(test["time"].rstrip("s"))
        for suite in json.loads(listing.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                file = str(pathlib.Path(test["file"]).relative_to(self.root))
                self.part_of[f"{suite['name']}.{test['name']}"] = file
        taken = dict.fromkeys(self.part_of.values(), 0.0)
        for test, file in self.part_of.items():
            taken[file] += seconds[test]
        self.parts = {part: self._digest(part) for part in sorted(taken, key=taken.get)}

    def _digest(self, part):
        """Of a file of tests and of the tests' headers that it includes."""
        files = sorted(file for file in included(self.root, part, {}) if file.startswith("tests/"))
        return sha256("".join(f"{file} {file_digest(self.root, file)}" for file in files))

    # What each mutant needs.

    def write_tree(self, tree):
        """The unmutated sources under `tree`, which comes first among the folders of headers."""
        for file, text in self.texts.items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(text)

    def compile(self, unit, tree, target):
        """Raises Invalid with the compiler's first error."""
        command = [*self.compiled[unit], *LEVEL, "-o", str(target), "-c", str(tree / unit)]
        command[1:1] = [f"-I{tree}", "-include", str(self.standard)]
        done = execute.execute(command, 60, cwd=self.build_folder)
        if done.status != 0:
            errors = [line for line in done.output.splitlines() if "error" in line]
            raise Invalid(errors[0] if errors else done.output[-500:])

    def link(self, objects, program):
        """Links the tests, cheapest file first, with these objects of the library. Raises Invalid."""
        order = {f"{pathlib.Path(part).name}.o": place for place, part in enumerate(self.parts)}
        words, tests = [], []
        for word in self.link_line:
            (tests if pathlib.Path(word).name in order else words).append(word)
        tests.sort(key=lambda word: order[pathlib.Path(word).name])
        out = words.index("-o")
        words[out + 1] = str(program)
        # In front, so that the mutated text of an inline function is the one that everybody gets.
        words[1:1] = [*map(str, objects.values()), *tests]
        words = [word for word in words if pathlib.Path(word).name != LIBRARY]
        done = execute.execute(words, 60, cwd=self.build_folder)
        if done.status != 0:
            raise Invalid(f"does not link: {done.output[-500:]}")

    def build(self, file, text, folder):
        """Compiles what the mutated file goes into, and links; the digest of its objects."""
        tree, objects, texts = folder / "tree", dict(self.base), []
        (tree / file).write_text(text)
        try:
            for unit in (unit for unit, inputs in self.inputs.items() if file in inputs):
                made = folder / (pathlib.Path(unit).name + ".o")
                self.compile(unit, tree, made)
                if made.read_bytes() != self.base[unit].read_bytes():
                    objects[unit] = made
                    texts.append(f"{unit} {sha256(made.read_bytes())}")
        finally:
            (tree / file).write_text(self.texts[file])
        if not texts:
            raise Identical
        self.link(objects, folder / PROGRAM)
        return sha256("\n".join(texts))

    def run(self, folder):
        """Runs the tests on what build() left, until the first failure."""
        log = folder / "log"
        command = ["sh", "-c", 'exec "$0" --gtest_fail_fast >"$1" 2>&1', str(folder / PROGRAM), str(log)]
        done = execute.execute(command, self.limit, cwd=self.root, memory=MEMORY)
        if done.status == 0:
            return Verdict("survived")
        output = log.read_text(errors="replace")
        failed, started = FAILED.search(output), STARTED.findall(output)
        by = failed[1] if failed else started[-1] if started else ""
        if done.late:
            detail = f"stopped after {self.limit} CPU seconds"
        elif done.status < 0:
            detail = f"ended by signal {-done.status}"
        else:
            detail = output[:failed.start()].rsplit("[ RUN ", 1)[-1][:600] if failed else output[-600:]
        # A failure outside of any test (such as of the observers' environment) counts for the last file.
        return Verdict("killed", by=by, part=self.part_of.get(by, list(self.parts)[-1]), detail=detail)
