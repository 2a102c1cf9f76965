# SPDX-License-Identifier: Apache-2.0
"""The command line: defaults and limits of contract section 8."""
import argparse
import dataclasses
import math
import pathlib
import re
from typing import Optional

SUITES = ("oracle", "reference", "host", "build", "cuda", "vgpu", "bench")
COMPILERS = {"nvrtc": ("nvrtc",), "ptx": ("ptx",), "both": ("ptx", "nvrtc")}
DTYPES = ("f32", "f16", "bf16")
MOST_ELEMENTS = (2**32 - 1) // 4
MOST_TENSORS = 1024


class UsageError(Exception):
    """The command line cannot be carried out: exit status 64, and nothing is written."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line says."""

    suite: str = "reference"
    compiler: str = "both"
    timeout: float = 600.0  # Seconds for each command.
    log_dir: Optional[pathlib.Path] = None  # None: a new folder in build/regressions.
    dry_run: bool = False
    offline: bool = False
    elements: int = 65536  # In each tensor.
    tensors: int = 4
    dtype: str = "bf16"
    amsgrad: bool = False
    iterations: int = 5
    samples: int = 5
    warmup: int = 2


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(f"{message}\n{self.format_usage().rstrip()}")


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"want a finite number of seconds above 0, got '{text}'")
    return value


def whole(least, most=None):
    """A parser of whole numbers in least..most."""
    def parse(text):
        if not re.fullmatch("[0-9]{1,20}", text) or int(text) < least or (most is not None and int(text) > most):
            wanted = f"of at least {least}" if most is None else f"in {least}..{most}"
            raise argparse.ArgumentTypeError(f"want a whole number {wanted}, got '{text}'")
        return int(text)
    return parse


def folder(text):
    if text == "":
        raise argparse.ArgumentTypeError("want a folder, got ''")
    return pathlib.Path(text)


def parser():
    default = Options()
    it = Parser(prog="run_gradient_guard_regressions.py", allow_abbrev=False, formatter_class=argparse.RawTextHelpFormatter,
                description="Runs one suite and keeps results.json and the log of each command in a fresh folder.",
                epilog="exit status: 0 passed; 1 failed, timed out or interrupted; 2 blocked; 64 usage error")
    it.add_argument("--suite", choices=SUITES, default=default.suite, help="""\
oracle     NumPy and PyTorch on the CPU; runs none of the C++ code
reference  vocabulary, rules and FP64 oracle; needs a C++20 compiler and nothing else (default)
host       every host test of the library
build      the old operator alone and the guard, each build option by itself
cuda       the operator's tests on a GPU
vgpu       the same on the virtual GPU, which is no hardware
bench      guarded step against the staged baseline, on a GPU""")
    it.add_argument("--compiler", choices=COMPILERS, default=default.compiler, help="of the kernels (both)")
    it.add_argument("--timeout", type=seconds, default=default.timeout, metavar="SECONDS", help="for each command (600)")
    it.add_argument("--log-dir", type=folder, metavar="FOLDER",
                    help="without a results.json (a new one in build/regressions)")
    it.add_argument("--dry-run", action="store_true", help="print the plan as JSON and do nothing else")
    it.add_argument("--offline", action="store_true", help="use only what is already there")
    bench = it.add_argument_group("options of the benchmark")
    bench.add_argument("--elements", type=whole(1, MOST_ELEMENTS), default=default.elements, metavar="N",
                       help="in each tensor (65536)")
    bench.add_argument("--tensors", type=whole(1, MOST_TENSORS), default=default.tensors, metavar="K", help="(4)")
    bench.add_argument("--dtype", choices=DTYPES, default=default.dtype, help="of the gradients (bf16)")
    bench.add_argument("--amsgrad", action="store_true")
    bench.add_argument("--iterations", type=whole(1), default=default.iterations, metavar="I", help="in each sample (5)")
    bench.add_argument("--samples", type=whole(3), default=default.samples, metavar="S", help="(5)")
    bench.add_argument("--warmup", type=whole(1), default=default.warmup, metavar="W", help="steps before (2)")
    return it


def parse(arguments):
    """Options; raises UsageError. --help prints and raises SystemExit(0)."""
    return Options(**vars(parser().parse_args(arguments)))
