# SPDX-License-Identifier: Apache-2.0
"""Runs the stages and keeps session.json and session.txt: both are whole at any time, and say how far it came."""
import contextlib
import datetime
import json
import os
import platform
import signal
import subprocess
import time

from gpu_session import stages

SCHEMA = 1
LABEL = {"cuda": "CUDA hardware", "vdriver": "virtual driver: a rehearsal, no hardware and no times of any"}
WANTED_OF_COPY = 0.8
MOST_OF_A_REASON = 200


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_atomically(path, text):
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def run_command(command, log, variables, folder, seconds):
    """(status, reason, data) of a command, which is ended with all that it started when its time is over."""
    try:
        with open(log, "wb") as output:
            process = subprocess.Popen(command.argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       cwd=folder, env=variables, start_new_session=True)
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                data = command.judge(-signal.SIGKILL, "")[2]  # what it had written by then
                return "failed", f"{command.name}: it ran past its {seconds:.0f} s", data
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    except OSError as error:
        return "blocked", f"{command.argv[0]}: {error.strerror}", None
    return command.judge(process.returncode, log.read_text(encoding="utf-8", errors="replace"))


def run_stage(stage, options, deadline):
    """The stage's entry of the record."""
    entry = {"name": stage.name, "title": stage.title, "status": "passed", "reason": None, "seconds": 0.0,
             "limit_seconds": stage.seconds, "commands": []}
    if stage.missing:
        entry.update(status="blocked", reason=stage.missing)
        return entry
    started = time.monotonic()
    ends = min(started + stage.seconds, deadline)
    statuses = []
    for command in stage.commands:
        left = ends - time.monotonic()
        if left <= 0:
            status, reason, data = "failed", f"{command.name}: no time was left", None
        else:
            log = options.out / "logs" / f"{stage.name}-{command.name}.log"
            status, reason, data = run_command(command, log, stages.environment(options, command), options.out, left)
        statuses.append(status)
        entry["commands"].append({"name": command.name, "command": list(command.argv), "status": status,
                                  "reason": reason, "data": data})
        for worst in ("failed", "blocked"):
            if worst in statuses and entry["status"] != "failed":
                first = next(c for c in entry["commands"] if c["status"] == worst)
                entry.update(status=worst, reason=first["reason"])
                break
    entry["seconds"] = round(time.monotonic() - started, 3)
    return entry


def data_of(record, name):
    return [c["data"] for s in record["stages"] if s["name"] == name for c in s["commands"] if c["data"]]


def targets(record):
    """What performance was promised, and what came: [{what, wanted, got, met}]; hardware only."""
    bench = [row for row in data_of(record, "bench") if row.get("hardware_time") and row["dtype"] == "f32"]
    if not bench:
        return []
    row = max(bench, key=lambda one: one["elements"])
    seconds = row["step_seconds"]["guarded"]
    found = []
    if row["copy_bytes_per_second"]:
        fraction = row["bytes_per_element"] * row["elements"] / seconds / row["copy_bytes_per_second"]
        found.append({"what": f"two-read bytes per second over measured copy bandwidth, {row['elements']} elements, f32",
                      "wanted": f">= {WANTED_OF_COPY}", "got": fraction, "met": fraction >= WANTED_OF_COPY})
    for report in data_of(record, "torch"):
        for other in report["rows"]:
            if (other["elements"], other["dtype"], other["scaler"]) == (row["elements"], "f32", False):
                ratio = other["step_seconds"]["median"] / seconds
                found.append({"what": f"PyTorch's clip_grad_norm_ + fused AdamW over the guarded step, "
                                      f"{row['elements']} elements, f32", "wanted": "> 1", "got": ratio, "met": ratio > 1})
    return found


def shortened(reason):
    """For people; session.json has all of it."""
    return reason if len(reason) <= MOST_OF_A_REASON else reason[:MOST_OF_A_REASON] + " ..."


def milliseconds(seconds):
    return f"{1e3 * seconds:.4f} ms"


def text_of(record):
    lines = [f"gradguard GPU session on {record['host']}: {record['device']}",
             f"started {record['started_utc']}, finished {record['finished_utc'] or '-'}: {record['status']}"]
    if record["reason"]:
        lines.append(shortened(record["reason"]))
    lines.append("")
    for stage in record["stages"]:
        lines.append(f"{stage['status']:8} {stage['name']:12} {stage['seconds']:7.1f} s  {stage['title']}")
        if stage["reason"]:
            lines.append(f"         {shortened(stage['reason'])}")
        for command in stage["commands"]:
            data = command["data"] or {}
            if "tests" in data:
                lines.append(f"         {command['name']}: {data['passed']} of {data['tests']} tests passed")
            if "cases" in data:
                lines.append(f"         {command['name']}: {data['cases']} cases and {data['corpus_cases']} of the corpus")
            if "output" in data and stage["name"] == "device":
                lines += [f"         {line}" for line in data["output"]]
    bench, torch = data_of(record, "bench"), [row for report in data_of(record, "torch") for row in report["rows"]]
    if bench or torch:
        lines += ["", f"one tensor, whole steps, medians; {record['device']}"]
    for row in bench:
        copy = row["copy_bytes_per_second"]
        lines.append(f"  {row['elements']:>10} {row['dtype']:4}  " + "  ".join(
            f"{name} {milliseconds(seconds)}" for name, seconds in row["step_seconds"].items())
            + (f"  copy {copy / 1e9:.0f} GB/s" if copy else ""))
    for row in torch:
        lines.append(f"  {row['elements']:>10} {row['dtype']:4}  PyTorch {milliseconds(row['step_seconds']['median'])}"
                     + (" with GradScaler" if row["scaler"] else "") + f"  on {row['device']}")
    for target in record["targets"]:
        lines.append(f"  {'reached' if target['met'] else 'NOT REACHED'}: {target['what']}: {target['got']:.3f}, "
                     f"wanted {target['wanted']}")
    return "\n".join(lines) + "\n"


def save(options, record):
    write_atomically(options.out / "session.json", json.dumps(record, indent=1) + "\n")
    write_atomically(options.out / "session.txt", text_of(record))


def run(options, planned):
    """The status of the session: passed, failed or blocked."""
    for folder in ("logs", "tmp", "cache"):
        (options.out / folder).mkdir(parents=True)
    absent = stages.no_gpu(options)
    record = {"schema": SCHEMA, "kind": "gradguard GPU session",
              "device": f"none: {absent}" if absent else LABEL[options.device],
              "hardware": options.device == "cuda" and not absent, "host": f"{platform.system()} {platform.machine()}",
              "started_utc": now(), "finished_utc": None, "seconds": None, "status": "running", "reason": None,
              "stages": [], "targets": []}
    started = time.monotonic()
    save(options, record)
    for stage in planned:
        entry = run_stage(stage, options, started + options.seconds)
        record["stages"].append(entry)
        record["targets"] = targets(record)
        save(options, record)
        print(f"{entry['status']:8} {stage.name:12} {entry['seconds']:7.1f} s"
              + (f"  {shortened(entry['reason'])}" if entry["reason"] else ""), flush=True)
    statuses = [entry["status"] for entry in record["stages"]]
    record["status"] = next((s for s in ("failed", "blocked") if s in statuses), "passed")
    record["reason"] = next((e["reason"] for e in record["stages"] if e["status"] == record["status"]), None)
    record["finished_utc"], record["seconds"] = now(), round(time.monotonic() - started, 3)
    save(options, record)
    print(f"{record['status']}: {options.out}/session.json, session.txt")
    return record["status"]
