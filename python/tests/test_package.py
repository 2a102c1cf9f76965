# SPDX-License-Identifier: Apache-2.0
"""The package is documented, typed, and needs no PyTorch."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")

FOLDER = Path(gradguard.__file__).parent


def test_importing_the_package_does_not_import_pytorch():
    code = "import sys, gradguard; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(FOLDER.parent)}).returncode == 0


@pytest.mark.parametrize("module", ["gradguard", "gradguard.reference"])
def test_every_public_name_is_documented(module):
    names = sys.modules[module].__all__
    bare = [name for name in names if not inspect.getdoc(getattr(sys.modules[module], name))]
    assert names and bare == []


def test_stubs_are_python_and_name_everything():
    stubs = {"gradguard": FOLDER / "_core/__init__.pyi", "gradguard.reference": FOLDER / "_core/reference.pyi"}
    for path in stubs.values():
        ast.parse(path.read_text())
    known = {node.name for node in ast.parse(stubs["gradguard"].read_text()).body if hasattr(node, "name")}
    public = {name: getattr(gradguard, name) for name in gradguard.__all__}
    assert {name for name, thing in public.items() if getattr(thing, "__module__", "") == "gradguard._core"} <= known
    assert (FOLDER / "py.typed").exists()


def test_no_object_is_reported_as_leaked_at_the_end():
    code = (
        "import numpy as np, gradguard as g\n"
        "a = np.ones(3, np.float32)\n"
        "kept = g.guarded_adamw_step([g.AdamWEntry(a, a)])\n"
        "g.check(lambda case: NotImplemented, cases=2, only='statistics')\n"
    )
    environment = {"PYTHONPATH": str(FOLDER.parent), "GRADGUARD_LEAK_WARNINGS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


ROOT = Path(__file__).resolve().parents[2]


def python_blocks():
    section = (ROOT / "README.md").read_text().partition("## From Python\n")[2].partition("\n## ")[0]
    return [block.partition("\n```")[0] for block in section.split("```python\n")[1:]]


def test_the_readmes_first_example_runs(capsys):
    exec(compile(python_blocks()[0], "README.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.endswith(" ulp\n")


def test_the_readmes_worked_example_is_the_file_in_examples():
    code = (ROOT / "examples/python/gradient_norms.py").read_text().split('"""\n\n', 1)[1]
    assert python_blocks()[1] == code.rstrip("\n")
