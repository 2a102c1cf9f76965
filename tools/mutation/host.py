# SPDX-License-Identifier: Apache-2.0
"""Mutants of the library's host code (kernels/host): validation, decision, accounting, submission."""
import pathlib

from .engine import Identical, MutationError
from .host_battery import SOURCES, Battery
from .host_mutator import enumerations, mutants_of

# Interfaces that every device implements: a change of them is one of all devices, and of nothing that is decided here.
INTERFACES = {"device.h", "event_clock.h"}


class HostTarget:
    """See engine.Target."""
    name = "host"

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {str(file.relative_to(self.root)): file.read_text()
                      for file in sorted((self.root / SOURCES).iterdir()) if file.suffix in {".cpp", ".h"}}
        self.tests = None  # a Battery, from set_up on

    def set_up(self, folder, jobs):
        self.tests = Battery(self.root, folder, self.texts, jobs)

    def sources(self):
        return [file for file in self.texts if pathlib.Path(file).name not in INTERFACES]

    def battery(self):
        return self.tests.parts

    def mutants(self):
        enums = {}
        for header in sorted((self.root / "reference/contract").glob("*.h")):
            enums |= enumerations(header.read_text())
        return [mutant for file in self.sources() for mutant in mutants_of(file, self.texts[file], enums)]

    def concerns(self, mutant):
        return sorted(set().union(*(inputs for inputs in self.tests.inputs.values() if mutant.file in inputs)))

    def prepare(self, folder):
        self.tests.write_tree(folder / "tree")

    def check_unmutated(self, folder):
        file = next(iter(self.sources()))
        try:
            self.tests.build(file, self.texts[file], folder)
        except Identical:
            pass
        else:
            raise MutationError(f"{file} compiles to another object from a worker's folder")
        self.tests.link(self.tests.base, folder / "host_test")
        verdict = self.tests.run(folder)
        if verdict.status != "survived":
            raise MutationError(f"the unmutated library fails {verdict.by}: {verdict.detail}")

    def build(self, mutant, folder):
        return self.tests.build(mutant.file, mutant.text, folder)

    def run(self, mutant, folder):
        return self.tests.run(folder)
