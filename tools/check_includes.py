#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the source tree to architecture.md: who may include whom, link edges, file length, licence line.

  tools/check_includes.py [ROOT]    prints one line for each violation; exit 1 when there is one

ARROWS below is the table of architecture.md for folders that exist. An entry of a row is a folder or one header of it.
"""
import pathlib
import re
import sys

CONTRACT = "reference/contract"
REFERENCE = {CONTRACT, "reference/exact", "reference/fp64", "reference/model"}
KERNELS = {"kernels/host", "kernels/cuda", "kernels/device/params.h"}
HARNESS = {"harness/vgpu", "harness/observers", "harness/devices", "harness/case", "harness/compare", "harness/io",
           "harness/subjects", "harness/generators", "harness/campaign", "harness/vdriver"}

ARROWS = {
    CONTRACT: set(),
    "reference/exact": {CONTRACT},
    "reference/fp64": {CONTRACT},
    "reference/model": {CONTRACT, "reference/exact", "reference/fp64"},
    "kernels/device": {CONTRACT + "/constants.h"},
    "kernels/ptx": set(),
    "kernels/host": {CONTRACT, "kernels/device/params.h", "kernels/ptx"},
    "kernels/cuda": {CONTRACT, "kernels/host"},
    "harness/vgpu": set(),
    "harness/observers": {"harness/vgpu"},
    "harness/devices": {CONTRACT, "kernels/host", "kernels/cuda", "harness/vgpu", "harness/observers"},
    "harness/vdriver": {"kernels/cuda/driver_abi.h", "harness/devices/finding_json.h", "harness/devices/kernel_counts.h", "harness/vgpu",
                        "harness/observers"},
    "harness/case": {CONTRACT, "reference/fp64", "reference/model", "harness/io"},
    "harness/compare": REFERENCE | {"kernels/host/launch_plan.h", "harness/case"},
    "harness/io": {CONTRACT},
    "harness/generators": REFERENCE | {"harness/case"},
    "harness/subjects": REFERENCE | KERNELS | {"harness/case", "harness/devices", "harness/vgpu", "harness/observers"},
    "harness/campaign": REFERENCE | {"harness/case", "harness/compare", "harness/io", "harness/generators",
                                     "harness/subjects"},
    "bench": REFERENCE | KERNELS | HARNESS | {"kernels/ptx", "kernels/device/load.cuh"},
    "property_tests": REFERENCE | KERNELS | HARNESS | {"tests/support"},
    "property_tests/hardware": REFERENCE | KERNELS | HARNESS | {"property_tests", "tests/support"},
    "property_tests/mutation": REFERENCE | {"kernels/ptx"},
    "property_tests/reported": REFERENCE | KERNELS | HARNESS | {"tests/support"},
    "python": REFERENCE | KERNELS | HARNESS,
    "tools/cli": REFERENCE | KERNELS | HARNESS | {"bench"},
    # A user of the installed library sees no more than this.
    "examples/trainer": {CONTRACT, "kernels/host", "harness/devices"},
}
# Tests may look at everything, but of each other only at what lies in tests/support.
TESTS = REFERENCE | KERNELS | HARNESS | {"kernels/device", "kernels/ptx", "tools/cli", "bench", "property_tests",
                                         "tests/support"}

# Other people's headers, and the only folders that may include them. Tests and the bench are free.
THIRD_PARTY = {
    "boost/": {"reference/exact"},
    "nlohmann/": {"harness/devices", "harness/vdriver", "harness/io", "harness/case", "harness/campaign", "tools/cli"},
    "CLI/": {"tools/cli"},
    "fmt/": {"harness/case", "harness/compare", "harness/io", "harness/generators", "harness/subjects", "harness/campaign",
             "tools/cli"},
    "gtest/": {"property_tests", "property_tests/hardware", "property_tests/mutation", "property_tests/reported"}, "gmock/": set(), "rapidcheck": {"harness/generators"}, "benchmark/": set(),
    "cuda": set(), "nvrtc": set(), "nanobind/": {"python"}, "numpy/": {"python"},
}
ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".cpp", ".inl", ".cuh", ".cu"}
LONG, TOO_LONG = 400, 450
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path, known):
    """The folder of ARROWS that a path from the root lies in, or tests/<area>; None outside of them."""
    parts = path.split("/")
    if parts[0] == "tests":
        return "/".join(parts[:2])
    for end in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:end]) in known:
            return "/".join(parts[:end])
    return None


def sources(root):
    for top in ("reference", "kernels", "harness", "bench", "property_tests", "python", "tools", "tests", "examples"):
        yield from sorted(f for f in (root / top).rglob("*") if f.suffix in SUFFIXES and f.is_file())


def may_include(folder, target, arrows):
    """Whether a file of `folder` may include the path `target`."""
    own = folder_of(target, arrows)
    allowed = TESTS if folder.startswith("tests/") else arrows[folder]
    return own == folder or own in allowed or target in allowed


def check_file(root, file, arrows, edges):
    """Violations of one file; adds its arrows between folders to `edges`."""
    path = str(file.relative_to(root))
    folder = folder_of(path, arrows)
    lines = file.read_text().splitlines()
    problems = []
    if folder is None:
        return [f"{path}:1: its folder has no row in ARROWS"]
    if not lines or not lines[0].startswith("// SPDX-License-Identifier: Apache-2.0"):
        problems.append(f"{path}:1: the first line is not the SPDX licence line")
    if len(lines) > TOO_LONG:
        problems.append(f"{path}:{len(lines)}: {len(lines)} lines, at most {LONG} wanted: split it by meaning")
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        where, target = f"{path}:{number}", match.group(2)
        if match.group(1) == "<":
            for prefix, users in THIRD_PARTY.items():
                if target.startswith(prefix) and folder not in users and not folder.startswith(("tests/", "bench")):
                    problems.append(f"{where}: {folder} may not use <{target}>")
            continue
        if folder.startswith("examples/") and (file.parent / target).is_file():
            continue  # An example is a project of its own.
        if not (root / target).is_file():
            problems.append(f"{where}: no file {target} (paths start at the project's root)")
        elif not may_include(folder, target, arrows):
            problems.append(f"{where}: {folder} may not include {target}")
        elif folder_of(target, arrows) != folder:
            edges.setdefault((folder, folder_of(target, arrows)), where)
    return problems


def target_links(root, arrows):
    """{folder: folders its CMake target links to} for every gradguard_library."""
    folders = {"gradguard_" + folder.split("/")[1]: folder for folder in arrows if "/" in folder}
    links = {}
    for folder in arrows:
        file = root / folder / "CMakeLists.txt"
        if not file.is_file():
            continue
        for body in re.findall(r"gradguard_library\((\w+[^)]*)\)", re.sub(r"#.*", "", file.read_text())):
            # Links may also be collected in a variable above the call.
            text = body + " ".join(re.findall(r"(?:set\(links|APPEND links)([^)]*)\)", file.read_text()))
            names = set(re.findall(r"\bgradguard_\w+", text)) - {body.split()[0]}
            links.setdefault(folder, set()).update(folders[n] for n in names if n in folders)
    return links


def check_links(root, arrows, edges):
    """Link edges must be allowed, and every include edge between targets must be a link edge, direct or through others."""
    links, problems = target_links(root, arrows), []

    def reach(folder, seen):
        for other in links.get(folder, ()):
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen

    for folder, others in sorted(links.items()):
        for other in sorted(others):
            if not any(entry == other or entry.startswith(other + "/") for entry in arrows[folder]):
                problems.append(f"{folder}/CMakeLists.txt: {folder} may not link to {other}")
    for (folder, other), where in sorted(edges.items()):
        if folder in links and other in links and other not in reach(folder, set()):
            problems.append(f"{where}: includes {other}, but the CMake target of {folder} does not link to it")
    return problems


def cycles(arrows):
    """Folders of the table that reach themselves."""
    def reach(folder, seen):
        for entry in arrows.get(folder, ()):
            other = entry if entry in arrows else folder_of(entry, arrows)
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen
    return [f"ARROWS: {folder} reaches itself" for folder in arrows if folder in reach(folder, set())]


def check(root, arrows=None):
    """(violations, warnings, number of files)."""
    arrows = ARROWS if arrows is None else arrows
    problems, warnings, edges, count = cycles(arrows), [], {}, 0
    for file in sources(root):
        count += 1
        problems += check_file(root, file, arrows, edges)
        length = file.read_text().count("\n")
        if LONG < length <= TOO_LONG:
            warnings.append(f"{file.relative_to(root)}: {length} lines, at most {LONG} wanted")
    problems += check_links(root, arrows, edges)
    if count == 0:
        problems.append(f"{root}: no source file found")
    return problems, warnings, count


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    problems, warnings, count = check(root.resolve())
    for line in problems:
        print(line)
    for line in warnings:
        print(f"warning: {line}")
    print(f"{count} files, {len(problems)} violation{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
