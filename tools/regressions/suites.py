# SPDX-License-Identifier: Apache-2.0
"""The commands of each suite. Everything that they write lies in the log folder."""
import dataclasses
import os
import shutil

import test_results
from regressions import ROOT, environment
from regressions.options import COMPILERS
from regressions.plan import MISSING_FOR_CMAKE, Plan

# Folders of tests/, or of the source tree where they have two parts. The host suite: the library and what it is held against.
HOST_AREAS = ("reference_alone", "reference", "compare", "io", "kernels", "host")
# The virtual GPU suite: the operator's tests, and first those of the machine that they run on.
VGPU_AREAS = ("vgpu", "observers", "vdriver", "cuda", "host", "bench", "cli", "faults", "vectors",
              "property_tests/hardware")
# The same on the kernels that NVRTC compiles: tests/nvrtc starts the tests of the library and the properties again.
NVRTC_AREAS = ("nvrtc", "property_tests/hardware")
# What carries the labels cuda-ptx and cuda-nvrtc: the hardware suite, the vectors and the instructions on a GPU.
CUDA_TARGETS = ("hardware_tests", "vectors_test", "device_conformance_test")
# Contract section 7, the old operator first: what tests/tools/consumer must find with one option on.
BUILD_OPTIONS = {
    "fused_adamw": ("FUSED_ADAMW",),
    "fused_adamw_device": ("FUSED_ADAMW", "FUSED_ADAMW_DEVICE"),
    "gradient_guard": ("FUSED_ADAMW", "GRADIENT_GUARD"),
    "gradient_guard_device": ("FUSED_ADAMW", "FUSED_ADAMW_DEVICE", "GRADIENT_GUARD", "GRADIENT_GUARD_DEVICE"),
    "fused_adamw_cuda": ("FUSED_ADAMW", "FUSED_ADAMW_DEVICE", "FUSED_ADAMW_CUDA"),
    "gradient_guard_cuda": ("FUSED_ADAMW", "FUSED_ADAMW_DEVICE", "FUSED_ADAMW_CUDA", "GRADIENT_GUARD",
                            "GRADIENT_GUARD_DEVICE"),
}
# Python tests that run the program, and so C++ code.
RUN_THE_PROGRAM = {"test_step_files.py", "test_replayed_groups.py"}

DEVICES = {
    "oracle": "none: NumPy and PyTorch on the CPU, none of the C++ code runs",
    "reference": "none: host code only",
    "host": "none: host code, with the virtual GPU as its device; no hardware",
    "build": "none: nothing runs on a device",
    "vgpu": "virtual GPU, not hardware",
}


def device_of(suite):
    """What the suite's kernels run on, in words."""
    if suite in DEVICES:
        return DEVICES[suite]
    reason = no_cuda()
    return f"none: {reason}" if reason else "CUDA hardware"


def plans_of(options, folder):
    """[Plan] of the suite; `folder` is the log folder, which need not exist yet."""
    return {"oracle": oracle, "reference": reference, "host": host, "build": build, "cuda": cuda, "vgpu": vgpu,
            "bench": bench}[options.suite](options, folder)


def pytest(name, python, files, folder, missing):
    """pytest over test files; a test that asked for the program would fail, for it names none."""
    junit = folder / f"{name}.xml"
    command = (python.program if python else "python3", "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
               "--basetemp", str(folder / "tmp" / name), "--junitxml", str(junit),
               "--gradguard-binary", str(folder / "no-program"), *(str(file) for file in files))
    return Plan(name, command, missing=missing, junit=junit)


def oracle(options, folder):
    python = environment.oracle_python()
    files = sorted(file for file in (ROOT / "oracle_py/tests").glob("test_*.py") if file.name not in RUN_THE_PROGRAM)
    torch_files = [file for file in files if file.name.startswith("test_torch")]
    numpy_files = [file for file in files if file not in torch_files]
    missing = None if python else ("no Python with NumPy, pytest and Hypothesis (oracle_py/requirements.txt; "
                                   "tools/setup.sh makes .venv)")
    no_torch = missing
    if python and os.environ.get("GRADGUARD_TORCH") == "none":
        no_torch = "GRADGUARD_TORCH=none leaves PyTorch out"
    elif python and not python.has("torch"):
        no_torch = f"no PyTorch in {python.program}"
    elif python and not torch_files:
        no_torch = "this version has no test against PyTorch (oracle_py/tests/test_torch*.py)"
    return [pytest("numpy", python, numpy_files, folder, missing),
            pytest("pytorch", python, torch_files or [ROOT / "oracle_py/tests/test_torch*.py"], folder, no_torch)]


def reference(options, folder):
    compiler, missing = environment.cxx()
    program = folder / "reference_alone"
    sources = sorted((ROOT / "tests/reference_alone").glob("*.cpp")) + sorted((ROOT / "reference/fp64").glob("*.cpp"))
    # As the build does: the oracle's arithmetic is unfused, and g++ 12 drops roundings when it vectorizes straight lines.
    flags = ("-std=c++20", "-O2", "-ffp-contract=off", "-fno-tree-slp-vectorize")
    probe = (*compiler, "-std=c++20", "-fsyntax-only", "-include", "bit", "-include", "span", "-x", "c++", os.devnull)
    return [
        Plan("compiler", probe, missing=missing, blocked_by=(("", f"{compiler[0]} is no C++20 compiler"),)),
        Plan("compile", (*compiler, *flags, "-I", str(ROOT), *map(str, sources), "-o", str(program)), missing=missing),
        Plan("check", (str(program),), missing=missing),
    ]


def generator():
    """(CMake generator, why none can be used)."""
    if not shutil.which("cmake"):
        return "Ninja", "no program cmake"
    if shutil.which("ninja"):
        return "Ninja", None
    if shutil.which("make"):
        return "Unix Makefiles", None
    return "Ninja", "no build program: neither ninja nor make"


def jobs():
    return str(len(os.sched_getaffinity(0)))


def configure(source, tree, definitions, compiler=None, name="configure"):
    kind, missing = generator()
    _, no_compiler = environment.cxx()
    command = ("cmake", "-S", str(source), "-B", str(tree), "-G", kind, *(f"-D{d}" for d in definitions))
    return Plan(name, command, compiler, missing=missing or no_compiler, blocked_by=MISSING_FOR_CMAKE)


def folder_of(area):
    return area if "/" in area else f"tests/{area}"


def build_tree(tree, compiler=None, name="build", area=None, target=None):
    """Builds the tree, or one target of it, or one folder of tests/, with what that needs."""
    command = ["cmake", "--build", str(tree), "--parallel", jobs()]
    if target:
        command += ["--target", target]
    if area and generator()[0] == "Ninja":
        command += ["--target", f"{folder_of(area)}/all"]
    elif area:
        command[2] = str(tree / folder_of(area))
    return Plan(name, tuple(command), compiler)


def ctest(folder, tree, name, compiler=None, label=None, missing=None):
    junit = folder / f"{name}.xml"
    command = ("ctest", "--test-dir", str(tree), "-j", jobs(), "--output-on-failure", "--no-tests=error", "-LE", "nightly",
               *(("-L", label) if label else ()), "--output-junit", str(junit))
    return Plan(name, command, compiler, missing=missing, junit=junit)


BENCH_TREE = ("CMAKE_BUILD_TYPE=Release", "GRADGUARD_BENCH=ON")


def areas(folder, names, compiler=None, label=None):
    """Each folder of tests/ is built by a command of its own, so that each has the whole time-out."""
    tree = folder / "cmake"
    plans = [configure(ROOT, tree, BENCH_TREE, compiler)]
    for area in names:
        name = area.rpartition("/")[2]
        plans += [build_tree(tree, compiler, f"build-{name}", area),
                  ctest(folder, tree / folder_of(area), f"test-{name}", compiler, label)]
    return plans


def host(options, folder):
    return areas(folder, HOST_AREAS)


def vgpu(options, folder):
    plans = []
    for compiler in COMPILERS[options.compiler]:
        if compiler == "ptx":
            plans += areas(folder, VGPU_AREAS, compiler, "vgpu")
        else:
            first, *rest = areas(folder, NVRTC_AREAS, compiler, "nvrtc")
            # Without NVRTC nothing is built first. What is built has the time-out in parts.
            plans += [dataclasses.replace(first, missing=test_results.missing_nvrtc() or first.missing),
                      build_tree(folder / "cmake", compiler, "build-host", "host"),
                      build_tree(folder / "cmake", compiler, "build-program", target="gradguard"), *rest]
    return plans


def build(options, folder):
    plans = []
    for name, contents in BUILD_OPTIONS.items():
        tree = folder / f"cmake-{name}"
        # Debug and -O0: the question is what an option contains, not how fast it is.
        definitions = [f"GRADGUARD_SOURCE_DIR={ROOT}", "CMAKE_BUILD_TYPE=Debug", "CMAKE_CXX_FLAGS_DEBUG=-O0",
                       f"GRADGUARD_{name.upper()}=ON", *(f"EXPECT_{c}=ON" for c in contents)]
        plans += [configure(ROOT / "tests/tools/consumer", tree, definitions, name=f"configure-{name}"),
                  build_tree(tree, name=f"build-{name}"), Plan(f"use-{name}", (str(tree / "consumer"),))]
    return plans


def no_cuda():
    """Why no kernel can run on hardware here; None when one can."""
    return test_results.missing_cuda()


def cuda(options, folder):
    """The unguarded operator's tests and the hardware suite, on a GPU; blocked without one. Nothing else is built."""
    tree = folder / "cmake"
    compilers = COMPILERS[options.compiler]
    first = compilers[0]
    plans = [configure(ROOT, tree, BENCH_TREE, first)]
    plans += [build_tree(tree, first, f"build-{target}", target=target) for target in CUDA_TARGETS]
    plans += [ctest(folder, tree, f"test-{compiler}", compiler, f"^cuda-{compiler}$") for compiler in compilers]
    plans[0] = dataclasses.replace(plans[0], missing=no_cuda() or plans[0].missing)
    return plans


# What the program says where the device or the compiler is missing (its exit status 4).
MISSING_FOR_BENCH = ((r"^gradguard: UnsupportedDevice: (.*)", "{0}"),)


def bench(options, folder):
    """Guarded step against staged baseline on a GPU, with each compiler; blocked without one."""
    tree = folder / "cmake"
    shape = ("--elements", options.elements, "--tensors", options.tensors, "--dtype", options.dtype,
             *(("--amsgrad",) if options.amsgrad else ()), "--iterations", options.iterations,
             "--samples", options.samples, "--warmup", options.warmup)
    compilers = COMPILERS[options.compiler]
    first = compilers[0]
    plans = [configure(ROOT, tree, BENCH_TREE, first), build_tree(tree, first, target="gradguard")]
    for compiler in compilers:
        command = (str(tree / "gradguard"), "bench", "step", "--device", "cuda", "--compiler", compiler,
                   *map(str, shape), "--report", str(folder / f"bench-{compiler}.json"))
        plans.append(Plan(f"bench-{compiler}", command, compiler, blocked_by=MISSING_FOR_BENCH))
    # Without a GPU nothing is built first.
    plans[0] = dataclasses.replace(plans[0], missing=no_cuda() or plans[0].missing)
    return plans
