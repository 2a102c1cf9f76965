#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers of the preset `fuzz` (README.md beside this file).

  tests/fuzz/run.py [TARGET...] [--seconds S] [--jobs J] [--keep] [--write FILE]

Each target begins with its corpus and its old findings and what earlier runs left in BUILD/fuzz. Where no target is
named, the fuzzers themselves are tested first: each planted fault (planted_target.cpp) must be found, its clean twin must
not. Exit status: 0 when nothing was found, 1 when something was (the input lies in BUILD/fuzz and the command that
reproduces it is printed), 2 when there is nothing to run.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/fuzz"


@dataclasses.dataclass
class Target:
    """Bounds of one target, and the dictionaries of words that mutations insert."""
    max_bytes: int
    dictionaries: tuple = ()


TARGETS = {
    "case_file": Target(8192, ("json", "case")),
    "case_step": Target(4096, ("json", "case")),
    "command_line": Target(512, ("command_line",)),
    "driver_configuration": Target(1024, ("json", "driver_configuration")),
    "group_file": Target(2048, ("json", "safetensors")),
    "ptx": Target(4096, ("ptx", "opcodes")),
    "ptx_listing": Target(2048, ("ptx", "opcodes")),
    "safetensors": Target(2048, ("json", "safetensors")),
}
# An input may take so long and so much, with sanitizers, on a busy machine.
SECONDS_PER_INPUT = 60
MEGABYTES = 2048
# The sanitizers end the process where libFuzzer can still write the input down.
ENVIRONMENT = {"ASAN_OPTIONS": "allocator_may_return_null=0:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}

# What libFuzzer or a sanitizer says of each planted fault.
PLANTED = {
    "reads_past_end": "AddressSanitizer: heap-buffer-overflow",
    "overflows": "signed integer overflow",
    "loses_a_byte": "property does not hold: what is written is what was read",
    "leaks": "LeakSanitizer: detected memory leaks",
    "never_ends": "libFuzzer: timeout",
    "takes_all_memory": "libFuzzer: out-of-memory",
}
PLANTED_SECONDS, CLEAN_RUNS = 60, 50000


def dictionary(names, folder):
    """One file of the words of `names`; `opcodes` are the instructions of the virtual GPU, a micro-PTX file each."""
    lines = []
    for name in names:
        if name == "opcodes":
            lines += [f'"{file.stem} "' for file in sorted((ROOT / "tests/conformance/ptx").glob("*.ptx"))]
        else:
            lines += (HERE / "dictionaries" / f"{name}.dict").read_text().splitlines()
    path = folder / ("-".join(names) + ".dict")
    path.write_text("\n".join(lines) + "\n")
    return path


def temporary_folder():
    """Where targets write files: in memory where that can be, for thousands of them are flushed in a second."""
    memory = pathlib.Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else pathlib.Path(tempfile.gettempdir())


def command(program, name, work, arguments):
    target = TARGETS[name]
    return [str(program), f"-max_len={target.max_bytes}", f"-timeout={SECONDS_PER_INPUT}",
            f"-report_slow_units={SECONDS_PER_INPUT}", f"-rss_limit_mb={MEGABYTES}", f"-dict={dictionary(target.dictionaries, work)}", *arguments]


def run(name, build, seconds, seeds):
    """The record of one target."""
    program = build / "tests/fuzz" / f"fuzz_{name}"
    work = build / "fuzz" / name
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    given = [folder for folder in (HERE / "corpus" / name, HERE / "findings" / name, *seeds) if folder.is_dir()]
    for old in work.glob("finding-*"):
        old.unlink()
    arguments = [f"-max_total_time={seconds}", "-print_final_stats=1", f"-artifact_prefix={work}/finding-", str(corpus),
                 *map(str, given)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=temporary_folder(), prefix="gradguard-fuzz-") as folder:
        environment = os.environ | ENVIRONMENT | {"TMPDIR": folder}
        with open(work / "log", "w+", encoding="utf-8", errors="replace") as log:
            status = subprocess.run(command(program, name, work, arguments), stdout=subprocess.DEVNULL, stderr=log,
                                    env=environment).returncode
            log.seek(0)
            text = log.read()
    last = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text)[-1:] or [("0", "0", "0")]
    executed = re.findall(r"stat::number_of_executed_units: (\d+)|^#(\d+)\s", text, re.MULTILINE)
    return {
        "seconds": round(time.monotonic() - started, 1),
        "executions": max((int(a or b) for a, b in executed), default=0),
        "edges": int(last[0][0]), "features": int(last[0][1]), "corpus": int(last[0][2]),
        "findings": sorted(str(path) for path in work.glob("finding-*")),
        "ended_well": status == 0,
    }


def keep(name, build, seeds):
    """Makes the corpus in the source tree what covers as much with as little."""
    program, work = build / "tests/fuzz" / f"fuzz_{name}", build / "fuzz" / name
    kept, new = HERE / "corpus" / name, work / "kept"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    sources = [folder for folder in (kept, work / "corpus", *seeds) if folder.is_dir()]
    with tempfile.TemporaryDirectory(dir=temporary_folder(), prefix="gradguard-fuzz-") as folder:
        subprocess.run(command(program, name, work, ["-merge=1", "-use_counters=0", str(new), *map(str, sources)]),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=os.environ | ENVIRONMENT | {"TMPDIR": folder})
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(new, kept)
    return len(list(kept.iterdir())), sum(file.stat().st_size for file in kept.iterdir())


def run_planted(build):
    """{fault: seconds until it was found, None where it was not}; the clean twin's None is what is wanted."""
    found = {}
    for fault, told in {"clean": None, **PLANTED}.items():
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            limit = f"-max_total_time={PLANTED_SECONDS}" if told else f"-runs={CLEAN_RUNS}"
            # On a busy machine any input may take two seconds.
            patience = 2 if fault == "never_ends" else SECONDS_PER_INPUT
            done = subprocess.run([str(build / "tests/fuzz" / f"planted_{fault}"), "-max_len=64",
                                   f"-timeout={patience}", "-rss_limit_mb=1024", limit, f"-artifact_prefix={folder}/"], text=True,
                                  errors="replace", capture_output=True, env=os.environ | ENVIRONMENT)
        seen = done.returncode != 0 and (told is None or told in done.stderr)
        found[fault] = round(time.monotonic() - started, 1) if seen else None
    return found


def report(name, result, build):
    told = f"{result['executions']} executions in {result['seconds']} s, {result['edges']} edges covered"
    if result["ended_well"] and not result["findings"]:
        print(f"{name}: nothing found: {told}", flush=True)
        return
    print(f"{name}: FOUND something: {told}; see {build / 'fuzz' / name / 'log'}", flush=True)
    for path in result["findings"]:
        print(f"  reproduce: {build / 'tests/fuzz' / ('fuzz_' + name)} {path}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-fuzz", help="folder of the preset fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--seeds", type=pathlib.Path, help="folder with a further folder of inputs for each target")
    parser.add_argument("--keep", action="store_true", help="afterwards minimise the corpora in the source tree anew")
    parser.add_argument("--write", type=pathlib.Path, help="write the result as JSON")
    options = parser.parse_args()
    build = options.build.resolve()
    names = options.targets or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        parser.error(f"no target is called {sorted(unknown)[0]}; want {', '.join(TARGETS)}")
    for name in names:
        if not (build / "tests/fuzz" / f"fuzz_{name}").exists():
            print(f"{build}: no fuzz_{name}; build the preset fuzz", file=sys.stderr)
            return 2

    planted = {} if options.targets else run_planted(build)
    gates = {fault: (seconds is None) == (fault == "clean") for fault, seconds in planted.items()}
    for fault, seconds in planted.items():
        print(f"planted {fault}: " + (f"found after {seconds} s" if seconds is not None else "nothing found")
              + ("" if gates[fault] else ": WRONG"), flush=True)

    seeds = {name: [options.seeds / name] if options.seeds else [] for name in names}
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {name: pool.submit(run, name, build, options.seconds, seeds[name]) for name in names}
        for name, future in running.items():
            results[name] = future.result()
            report(name, results[name], build)
    problems = [f"planted {fault} was {'' if fault == 'clean' else 'not '}found" for fault in gates if not gates[fault]]
    problems += [f"{name}: {', '.join(r['findings']) or 'ended with an error'}" for name, r in results.items()
                 if r["findings"] or not r["ended_well"]]
    if options.keep:
        for name in names:
            files, size = keep(name, build, seeds[name])
            print(f"{name}: {files} files, {size} bytes kept")
    if options.write:
        options.write.write_text(json.dumps({"planted": planted, "targets": results, "problems": problems}, indent=2)
                                 + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
