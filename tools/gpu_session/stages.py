# SPDX-License-Identifier: Apache-2.0
"""What the session runs, stage by stage."""
import dataclasses
import os
import pathlib
from typing import Callable, Optional

import test_results
from gpu_session import ROOT, judge

NAMES = ("device", "suite-ptx", "suite-nvrtc", "vectors", "bits", "check", "sanitizer", "bench", "torch",
         "instructions")
# A GPU takes the figures of contract section 8's benchmark at three sizes of one tensor; the last is the one that
# performance is promised for. The rehearsal takes what the virtual driver does in a moment.
SIZES = {"cuda": (1 << 28, 1 << 22, 1 << 16), "vdriver": (5000, 1025, 64)}
DTYPES = ("f32", "bf16", "f16")
AGREEMENT = "*HardwareAgreement.*"


@dataclasses.dataclass(frozen=True)
class Command:
    """One program. `judge`: (exit status, log's text, folder) -> (status, reason, data)."""

    name: str  # Of its log.
    argv: tuple
    judge: Callable
    own: bool = True  # A program of the build: it takes the libraries that were packed with it.


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    title: str
    seconds: float  # Its own limit.
    commands: tuple
    missing: Optional[str] = None  # Why it cannot run here.


def program(build, name):
    """Path of a program in a build folder."""
    places = {"hardware_tests": "property_tests/hardware", "vectors_test": "tests/vectors",
              "device_conformance_test": "tests/conformance"}
    return build / places.get(name, "") / name


def no_gpu(options):
    """Why the stages' device is not here; None when it is."""
    if options.device == "cuda":
        return test_results.missing_cuda()
    library = build_library(options.build)
    return None if library.exists() else f"no virtual driver: {library}"


def build_library(build):
    return build / "harness/vdriver/libgradguard_vdriver.so"


def environment(options, command):
    """The tests' files are those that lie here; a packed program takes the libraries beside it."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("GTEST_", "GRADGUARD_"))}
    variables.update({
        "GRADGUARD_TEST_SOURCE_DIR": str(ROOT),
        "GRADGUARD_VDRIVER_LIBRARY": str(build_library(options.build)),
        "TMPDIR": str(options.out / "tmp"), "XDG_CACHE_HOME": str(options.out / "cache"),
        "CUDA_CACHE_PATH": str(options.out / "cache/driver"), "PYTHONDONTWRITEBYTECODE": "1",
    })
    if os.path.isabs(options.python):  # PyTorch brings NVRTC along
        variables.setdefault("VIRTUAL_ENV", str(pathlib.Path(options.python).parent.parent))
    packed = options.build / "lib"
    if command.own and packed.is_dir():
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(packed), os.environ.get("LD_LIBRARY_PATH"))))
    return variables


def own(build, name, *arguments):
    return (str(program(build, name)), *map(str, arguments))


def gtest(options, name, binary, pattern):
    out = options.out / f"{name}.json"
    argv = own(options.build, binary, f"--gtest_filter={pattern}", f"--gtest_output=json:{out}", "--gtest_brief=1")
    return Command(name, argv, judge.gtest(out))


def suite(options, compiler):
    """The hardware suite but the stage "bits"; in the rehearsal what takes no time, as ctest runs all of it."""
    setup = f"{options.device}_{compiler}"
    pattern = f"*/{setup}-{AGREEMENT}" if options.device == "cuda" else f"*HardwareDevice.*/{setup}:*HardwareKernel.*/{setup}"
    return gtest(options, f"suite-{compiler}", "hardware_tests", pattern)


def check(options, name, prefix=(), extra=()):
    """`gradguard check`, the corpus first."""
    arguments = ("check", "--device", options.device, "--jobs", "1", "--corpus", ROOT / "property_tests/corpus", "--json")
    return Command(name, (*prefix, *own(options.build, "gradguard", *arguments, *extra)), judge.check)


def sanitizer(options):
    """(commands, why there are none). Sanitized kernels are slow: the corpus and few cases."""
    extra = ("--cases", "20")
    if options.device == "vdriver":  # Its observers look for the same, and more.
        return (check(options, "sanitizer-observers", extra=extra),), None
    tool = test_results.compute_sanitizer()
    if tool is None:
        return (), test_results.missing_compute_sanitizer()
    return tuple(check(options, f"sanitizer-{kind}", (tool, "--tool", kind, "--error-exitcode", "9"), extra)
                 for kind in ("memcheck", "racecheck", "initcheck", "synccheck")), None


def bench(options):
    """The largest FP32 step first, the largest of half precision last: most of their time goes into drawing the inputs
    and comparing the results on the host, and a stage that runs out of time loses its end."""
    commands = []
    rehearsal = options.device == "vdriver"
    sizes = SIZES[options.device]
    rows = [(elements, dtype) for elements in sizes for dtype in DTYPES]
    for elements, dtype in sorted(rows, key=lambda row: row[0] == max(sizes) and row[1] != "f32"):
        name = f"bench-{dtype}-{elements}"
        report = options.out / f"{name}.json"
        iterations = 1 if rehearsal else 5 if elements >= 1 << 26 else 20
        commands.append(Command(name, own(
            options.build, "gradguard", "bench", "step", "--device", options.device, "--elements", elements, "--tensors", 1,
            "--dtype", dtype, "--iterations", iterations, "--samples", 3, "--warmup", 1 if rehearsal else 2, "--report",
            report), judge.bench(report)))
    return tuple(commands)


def torch(options):
    out = options.out / "torch.json"
    where = "cuda" if options.device == "cuda" else "cpu"
    argv = (options.python, str(ROOT / "tools/gpu_session/torch_steps.py"), "--device", where, "--elements",
            ",".join(map(str, SIZES[options.device])), "--dtypes", ",".join(DTYPES), "--out", str(out))
    return (Command("torch", argv, judge.torch(out), own=False),)


def instructions(options):
    """In pieces, so that a run that is cut short has said something."""
    parts = (0,) if options.device == "vdriver" else range(8)
    return [gtest(options, f"instructions-{part}", "device_conformance_test", f"*/{options.device}_{part}") for part in parts]


def device(options):
    """What the machine says of its GPU."""
    if options.device == "vdriver":
        return (Command("device", own(options.build, "gradguard", "--version"), judge.text),)
    query = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,compute_cap"
    return (Command("device", ("nvidia-smi", f"--query-gpu={query}", "--format=csv"), judge.text, own=False),
            Command("version", own(options.build, "gradguard", "--version"), judge.text))


NEEDED = {"suite-ptx": "hardware_tests", "suite-nvrtc": "hardware_tests", "bits": "hardware_tests",
          "vectors": "vectors_test", "check": "gradguard", "sanitizer": "gradguard", "bench": "gradguard",
          "device": "gradguard", "instructions": "device_conformance_test"}


def stages_of(options):
    """[Stage] that were asked for, in their order. The limits add up to less than six minutes."""
    absent = no_gpu(options)

    def stage(name, title, seconds, commands, missing=None):
        needed = program(options.build, NEEDED[name]) if name in NEEDED else None
        not_built = f"not built: {needed}" if needed and not needed.exists() else None
        return Stage(name, title, seconds, tuple(commands), absent or missing or not_built)

    under, no_sanitizer = sanitizer(options)
    rehearsal = options.device == "vdriver"
    time_box = ("--cases", "60") if rehearsal else ("--time", "15s")
    all_stages = (
        stage("device", "what the device says of itself", 8, device(options)),
        stage("suite-ptx", "hardware suite, kernels compiled ahead of time", 42, [suite(options, "ptx")]),
        stage("suite-nvrtc", "hardware suite, kernels compiled by NVRTC", 32, [suite(options, "nvrtc")]),
        stage("vectors", "vectors of the Python oracle and PyTorch", 12,
              [gtest(options, "vectors", "vectors_test", f"*/{options.device}_*")]),
        stage("bits", "bit for bit beside the virtual GPU, both compilers", 26,
              [gtest(options, "bits", "hardware_tests", f"{AGREEMENT}/{options.device}_*")]),
        stage("check", "drawn cases against every property", 24, [check(options, "check", extra=time_box)]),
        stage("sanitizer", "observers of the virtual GPU over the corpus (compute-sanitizer is for hardware)"
              if rehearsal else "compute-sanitizer over the corpus", 44, under, no_sanitizer),
        stage("bench", "guarded step beside the staged baseline", 96, bench(options)),
        stage("torch", "PyTorch's clip_grad_norm_ and fused AdamW" + (" on the CPU" if rehearsal else ""), 36,
              torch(options)),
        stage("instructions", "instructions of the virtual GPU's table beside their exact models", 34,
              instructions(options)),
    )
    return [one for one in all_stages if one.name in options.stages]
