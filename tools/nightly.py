#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The record of the nightly run, tests/nightly/last.json: what each stage of it last did, when, for how long, on what.

  tools/nightly.py                                 what the record says, and which stages ran on other sources
  tools/nightly.py --add STAGE --from FILE.json    merge the result of a stage (tools/test.sh does)
  tools/nightly.py --mutation                      merge what property_tests/mutation/results.json says

A stage is {finished_utc, seconds, sources_sha256, commit, compiler, complete, left_out, ok, problems} and what only it
has. sources_sha256 is over the files that the stage depends on (SOURCES). Exit status of the first form: 1 when a stage
is missing, was not complete, had problems, or ran on other sources.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests/nightly/last.json"
MUTATION = ROOT / "property_tests/mutation/results.json"

BUILD = ("CMakeLists.txt", "CMakePresets.json", "cmake")
CODE = ("reference", "kernels", "harness")
# What a stage runs on: folders and files under version control, or not ignored by it.
SOURCES = {
    "tests": (*BUILD, *CODE, "bench", "examples", "oracle_py", "property_tests", "python", "tests", "tools"),
    "asan": (*BUILD, *CODE, "bench", "property_tests", "tests", "tools/cli"),
    "tsan": (*BUILD, *CODE, "bench", "property_tests", "tests", "tools/cli"),
    "fuzz": (*BUILD, *CODE, "tests/conformance/ptx", "tests/fuzz", "tools/cli"),
    "python": (*BUILD, *CODE, "oracle_py", "property_tests/vectors", "python", "tools/cli"),
    # As its own record says: the mutation run hashes what it mutates and what it runs.
    "mutation": (),
}
RECORDS = ("tests/nightly/", "property_tests/mutation/results.json")
TEXT = (".md", ".rst")


def source_files(folders):
    """Paths from the root, sorted. Records and text that nothing reads are no sources."""
    if not folders:
        return []
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
                             *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in sorted(set(filter(None, listed.split("\0"))))
            if not path.startswith(RECORDS) and not path.endswith(TEXT) and (ROOT / path).is_file()]


def sources_sha256(folders):
    """SHA-256 over a line `SHA-256 of the file, path` for each source file."""
    total = hashlib.sha256()
    for path in source_files(folders):
        total.update(f"{hashlib.sha256((ROOT / path).read_bytes()).hexdigest()}  {path}\n".encode())
    return total.hexdigest()


def first_line(command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.partition("\n")[0] or None
    except OSError:
        return None


def stage_record(stage, seconds, problems, left_out=None, compiler="c++", **more):
    """A stage that has just ended."""
    return {
        "finished_utc": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "sources_sha256": sources_sha256(SOURCES[stage]),
        "commit": first_line(["git", "rev-parse", "HEAD"]),
        "compiler": first_line([compiler, "--version"]),
        "complete": left_out is None,
        "left_out": left_out,
        "ok": not problems,
        "problems": problems,
        **more,
    }


def read(path):
    """The record; an empty one where there is none or one of another schema."""
    data = json.loads(path.read_text()) if path.is_file() else {}
    return data if data.get("schema") == 2 else {"schema": 2, "stages": {}}


def merge(path, stage, result):
    """Puts the result in the place of the stage's last one; all of it or nothing."""
    if stage not in SOURCES:
        raise ValueError(f"no stage is called {stage}; want one of {', '.join(SOURCES)}")
    data = read(path)
    data["stages"][stage] = result
    data["stages"] = {name: data["stages"][name] for name in SOURCES if name in data["stages"]}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(data, indent=2) + "\n")
    os.replace(part, path)


def mutation_stage():
    """The mutation run is not repeated each night: its own record is taken over, with the hash of that record."""
    text = MUTATION.read_bytes()
    results = json.loads(text)
    count = {level: {what: len(value) if isinstance(value, list) else value for what, value in results[level].items()
                     if isinstance(value, (int, list))} for level in ("device", "host") if level in results}
    return {"record": str(MUTATION.relative_to(ROOT)), "record_sha256": hashlib.sha256(text).hexdigest(),
            "complete": len(count) == 2, "left_out": None if len(count) == 2 else "a level has no results",
            "ok": True, "problems": [], **count}


def status(path):
    """Prints a line for each stage; whether all of them are good and present."""
    stages, good = read(path)["stages"], True
    for stage in SOURCES:
        said = stages.get(stage)
        if said is None:
            print(f"{stage}: never ran")
            good = False
            continue
        told = ["ok" if said["ok"] else f"{len(said['problems'])} problems"]
        if not said["complete"]:
            told.append(f"not complete: {said['left_out']}")
        if stage == "mutation":
            current = MUTATION.is_file() and hashlib.sha256(MUTATION.read_bytes()).hexdigest() == said["record_sha256"]
        else:
            told.append(f"{said['finished_utc']}, {said['seconds'] or '?'} s")
            current = said["sources_sha256"] == sources_sha256(SOURCES[stage])
        told.append("on the present sources" if current else "on other sources")
        print(f"{stage}: " + "; ".join(told))
        good = good and said["ok"] and said["complete"] and current
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", choices=SOURCES, metavar="STAGE", help=", ".join(SOURCES))
    parser.add_argument("--from", dest="source", type=pathlib.Path, help="what the stage wrote, JSON; `problems` says what was wrong")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long it took")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--left-out", help="the run was not complete: what was left out and why")
    parser.add_argument("--mutation", action="store_true")
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    options = parser.parse_args()
    if options.mutation:
        if not MUTATION.is_file():
            print(f"blocked: there is no {MUTATION.relative_to(ROOT)}")
            return 0
        merge(options.record, "mutation", mutation_stage())
        return 0
    if options.add is None:
        return 0 if status(options.record) else 1
    if options.source is None:
        parser.error("--add wants --from")
    said = json.loads(options.source.read_text())
    problems = said.pop("problems", [])
    for environment in said.get("environments", []):  # of tools/python_matrix.py
        problems += [f"{environment['name']}: {problem}" for problem in environment["problems"]]
    for name in ("schema", "finished_utc"):
        said.pop(name, None)
    merge(options.record, options.add, stage_record(options.add, options.seconds, problems, options.left_out,
                                                    options.compiler, **said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
