# SPDX-License-Identifier: Apache-2.0
"""Mutants of the kernels: their CUDA source, compiled as tools/regenerate_ptx.py compiles it, and their PTX.

Both builds of a module (with and without contraction) are compiled from a mutant of the source; a mutant of the PTX is
one of one build, judged by what that build may do. Two mutants are the same when the machine code that ptxas makes of
them is (line numbers left out): a change that the assembler undoes is no mutant. What ptxas refuses is invalid.

The battery: ordinary test programs of the project, linked with the mutant's kernels in place of the embedded ones
(property_tests/mutation/CMakeLists.txt), the cheapest first, each until its first failure. A part may use `seconds` of
CPU time; what runs on and on ends there, killed. All of them together: 40.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

import regenerate_ptx

from . import cuda_mutator, ptx_mutator
from .engine import Identical, Invalid, MutationError, Verdict, sha256
from .execute import execute

DEVICE, PTX = "kernels/device", "kernels/ptx"
CONSTANTS = "reference/contract/constants.h"
MODULES, BUILDS = regenerate_ptx.MODULES, regenerate_ptx.BUILDS
INCLUDED = {"load.cuh": MODULES, "params.h": MODULES, "scaled_pair.cuh": ("statistics",), "statistics.cu": ("statistics",),
            "adamw_math.cuh": ("update",), "update.cu": ("update",)}
ASSEMBLER_FLAGS = ["-arch=sm_80"]
COMPILE_SECONDS = 60
TARGET = "gradguard_mutation_battery"


@dataclasses.dataclass(frozen=True)
class Part:
    name: str        # of the CMake target that the program is linked from
    folder: str      # of its sources
    filter: str
    seconds: int
    sources: str = "*_test.cpp"


BATTERY = (
    Part("vectors_test", "tests/vectors", "*", 3),
    Part("host_test", "tests/host", "*", 10),
    Part("property_tests", "property_tests", "-*PlantedFault*:*CleanTwin*", 15),
    Part("exhaustive_halves_test", "tests/host", "*Update*:*Scale0:*Scale3", 6, "exhaustive_halves_test.cpp"),
    Part("reported_test", "property_tests/reported",
         "Reported.*-*N33_OneValueIsSeenOnceAtSomeEdges*:*N16_TheNormOfMillions*", 4),
    Part("kernels_test", "tests/kernels", "-*PlantedInPtx*", 2),
)


def strip_lines(ptx):
    """PTX without what names source lines."""
    body = ptx.split("\t.file\t", 1)[0]
    return "\n".join(line for line in body.splitlines() if not re.match(r"\s*(\.loc\b|//|$)", line)) + "\n"


class DeviceTarget:
    """See engine.Target."""
    name = "device"

    def __init__(self, root, build=None):
        """`build`: a folder with the battery as it is to be used; None: it is built."""
        self.root, self.build_folder = pathlib.Path(root), build
        self.original = {f"{m}.{b}.ptx": (self.root / PTX / f"{m}.{b}.ptx").read_text() for m in MODULES for b in BUILDS}

    def set_up(self, folder, jobs):
        self.nvcc, blocked, release = regenerate_ptx.find_compiler()
        if self.nvcc is None or blocked:
            raise MutationError(f"blocked: {blocked}")
        self.ptxas = pathlib.Path(self.nvcc).with_name("ptxas")
        if not self.ptxas.is_file():
            raise MutationError(f"blocked: no ptxas beside {self.nvcc}")
        build = self.build_folder or self._build(folder / "build", jobs)
        self.programs = folder / "programs"
        shutil.rmtree(self.programs, ignore_errors=True)
        self.programs.mkdir()
        for part in BATTERY:  # copies, so that nobody's build changes them under way
            shutil.copy2(build / "property_tests/mutation" / f"mutated_{part.name}", self.programs / part.name)

    def _build(self, build, jobs):
        if not (build / "CMakeCache.txt").is_file():
            launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
            self._command(["cmake", "-S", str(self.root), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release",
                           "-DGRADGUARD_BENCH=ON", *launcher])
        self._command(["cmake", "--build", str(build), "--target", TARGET, "-j", str(jobs)])
        return build

    @staticmethod
    def _command(command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise MutationError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")

    def sources(self):
        return [f"{DEVICE}/{name}" for name in INCLUDED] + [CONSTANTS] + [f"{PTX}/{name}" for name in self.original]

    def battery(self):
        """Each part's digest: of its test files, their helpers beside them, its filter and limit."""
        found = {}
        for part in BATTERY:
            folder = self.root / part.folder
            files = sorted({*folder.glob(part.sources), *folder.glob("*.h")})
            if part.name == "property_tests":
                files += sorted((self.root / "property_tests/corpus").glob("*.json"))
            contents = [f"{f.name}={sha256(f.read_bytes())}" for f in files if f.name != "planted_search_test.cpp"]
            found[part.name] = sha256("\0".join([part.filter, str(part.seconds), *contents]))
        return found

    def mutants(self):
        found = []
        for name in INCLUDED:
            found += cuda_mutator.mutants_of(f"{DEVICE}/{name}", (self.root / DEVICE / name).read_text())
        same = self.original["statistics.fmad.ptx"], self.original["statistics.nofmad.ptx"]
        for name, text in self.original.items():
            if name == "statistics.nofmad.ptx" and strip_lines(same[0]) == strip_lines(same[1]):
                continue  # mutants of the other build are mutants of this one
            found += ptx_mutator.mutants_of(f"{PTX}/{name}", text)
        return found

    def concerns(self, mutant):
        """All files of the modules that include the mutated one; of PTX the file itself."""
        if mutant.level == "ptx":
            return [mutant.file]
        modules = set(INCLUDED[pathlib.Path(mutant.file).name])
        return sorted([f"{DEVICE}/{name}" for name, of in INCLUDED.items() if modules & set(of)] + [CONSTANTS])

    def prepare(self, folder):
        shutil.copytree(self.root / DEVICE, folder / "tree" / DEVICE)
        (folder / "tree" / CONSTANTS).parent.mkdir(parents=True)
        shutil.copy(self.root / CONSTANTS, folder / "tree" / CONSTANTS)
        (folder / "kernels").mkdir()
        self.machine_code = {}
        self._restore(folder)

    def _restore(self, folder):
        for name, text in self.original.items():
            (folder / "kernels" / name).write_text(text)

    def check_unmutated(self, folder):
        for module in MODULES:
            for build in BUILDS:
                if self._compile(module, build, folder) != self.original[f"{module}.{build}.ptx"]:
                    raise MutationError(f"{PTX}/{module}.{build}.ptx is not what nvcc makes of {DEVICE}: "
                                        "run tools/regenerate_ptx.py")
        verdict = self._battery(folder)
        if verdict.status != "survived":
            raise MutationError(f"the unmutated kernels fail {verdict.by} ({verdict.part}): {verdict.detail}")

    def _compile(self, module, build, folder):
        """The PTX of one module of the tree in the worker's folder. Raises Invalid."""
        tree = folder / "tree"
        command = [self.nvcc, *regenerate_ptx.FLAGS, BUILDS[build], f"{DEVICE}/{module}.cu", "-o", str(folder / "out.ptx")]
        done = execute(command, COMPILE_SECONDS, cwd=tree)
        if done.status != 0:
            errors = [line for line in done.output.splitlines() if "error" in line]
            raise Invalid((errors or done.output.splitlines() or ["no message"])[0].replace(f"{tree}/", ""))
        return regenerate_ptx.relative_text((folder / "out.ptx").read_text(), tree)

    def _assemble(self, text, folder):
        """Digest of the machine code of a module, line numbers left out. Raises Invalid."""
        (folder / "in.ptx").write_text(strip_lines(text))
        done = execute([str(self.ptxas), *ASSEMBLER_FLAGS, str(folder / "in.ptx"), "-o", str(folder / "out.cubin")],
                       COMPILE_SECONDS)
        if done.status != 0:
            raise Invalid(done.output.strip().splitlines()[0].replace(f"{folder}/", ""))
        return sha256((folder / "out.cubin").read_bytes())

    def _code_of(self, name, text, folder):
        """The same of a file of kernels; the unmutated ones are assembled once."""
        if text != self.original[name]:
            return self._assemble(text, folder)
        if name not in self.machine_code:
            self.machine_code[name] = self._assemble(text, folder)
        return self.machine_code[name]

    def build(self, mutant, folder):
        self._restore(folder)
        texts = dict(self.original)
        if mutant.level == "ptx":
            name = pathlib.Path(mutant.file).name
            texts[name] = mutant.text
            if name == "statistics.fmad.ptx" and strip_lines(self.original[name]) == strip_lines(
                    self.original["statistics.nofmad.ptx"]):
                texts["statistics.nofmad.ptx"] = mutant.text
        else:
            source = folder / "tree" / mutant.file
            kept = source.read_text()
            source.write_text(mutant.text)
            try:
                for module in INCLUDED[source.name]:
                    for build in BUILDS:
                        texts[f"{module}.{build}.ptx"] = self._compile(module, build, folder)
            finally:
                source.write_text(kept)
        code = {name: self._code_of(name, text, folder) for name, text in texts.items()}
        if all(code[name] == self._code_of(name, self.original[name], folder) for name in texts):
            raise Identical
        for name, text in texts.items():
            (folder / "kernels" / name).write_text(text)
        return sha256(json.dumps(code, sort_keys=True))

    def run(self, mutant, folder):
        return self._battery(folder)

    def _battery(self, folder):
        environment = dict(os.environ, GRADGUARD_MUTANT=str(folder / "kernels"), TMPDIR=str(folder))
        for part in BATTERY:
            done = execute([str(self.programs / part.name), "--gtest_fail_fast", "--gtest_brief=1",
                            f"--gtest_filter={part.filter}"], part.seconds, cwd=self.root, environment=environment)
            if done.late:
                return Verdict("killed", "time: it does not end", part.name, f"in {part.seconds} CPU seconds")
            if done.status != 0:
                failed = re.search(r"\[  FAILED  \] ([\w/.]+)", done.output)
                by = failed[1] if failed else f"status {done.status}"
                return Verdict("killed", by, part.name, failure_of(done.output))
        return Verdict("survived")


def failure_of(output):
    """The first lines of the first failure."""
    at = output.find("Failure")
    return output[max(0, output.rfind("\n", 0, at)):][:600].strip() if at >= 0 else output[-600:].strip()
