# SPDX-License-Identifier: Apache-2.0
"""From the command line to the exit status."""
import contextlib
import datetime
import errno
import json
import os
import pathlib
import shutil
import sys

from regressions import ROOT, environment, execute, results, suites
from regressions.options import UsageError, parse

EXIT = {"passed": 0, "failed": 1, "interrupted": 1, "blocked": 2}
EXIT_CANNOT_WRITE = 1
EXIT_USAGE = 64
RUN_STATUS = {"passed": "passed", "failed": "failed", "timeout": "failed", "blocked": "blocked",
              "interrupted": "interrupted"}
DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
TAIL_LINES = 20


def say(text, stream=None):
    """Prints a line; a reader that has gone away does not end the run."""
    stream = stream or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except (OSError, ValueError):
        # What stays in the buffer would fail again when Python exits, which makes the exit status 120.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def log_folder(options):
    """Absolute path of the log folder; raises UsageError when it cannot be a fresh one. Creates nothing."""
    if options.log_dir is None:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        return ROOT / "build/regressions" / f"{options.suite}-{stamp}-{os.getpid()}"
    folder = pathlib.Path(os.path.abspath(options.log_dir))
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError(f"--log-dir {options.log_dir}: not a folder")
    if os.path.lexists(folder / results.NAME):
        raise UsageError(f"--log-dir {options.log_dir}: used, it has a {results.NAME}; name a fresh one")
    return folder


def make_folder(folder):
    """Creates it; raises UsageError where that is not the disk's fault."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in DISK_TROUBLE:
            raise
        raise UsageError(f"--log-dir {folder}: {error.strerror}") from None


def claim(folder, record):
    """Writes the first results.json; raises UsageError when another run has just done so."""
    try:
        results.write(folder, record, first=True)
    except results.AlreadyUsed:
        raise UsageError(f"--log-dir {folder}: used, it has a {results.NAME}; name a fresh one") from None
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise UsageError(f"--log-dir {folder}: {error.strerror}") from None
        raise


def show_tail(log):
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    say("\n".join(f"    {line}" for line in lines), sys.stderr)


def run_plans(options, folder, plans, record, stop):
    """Runs the plans up to the first that does not pass, and keeps the record."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    variables = environment.variables(temporary, options.offline)
    status, reason = "passed", None
    for number, plan in enumerate(plans, 1):
        if stop.signal:
            status, reason = "interrupted", f"{stop.signal.name} before {plan.name}"
            break
        log = folder / f"{number:02d}-{plan.name}.log"
        outcome = execute.run(plan, log, options.timeout, variables, stop)
        record["results"].append(results.new_result(plan, log.name, outcome))
        status, reason = RUN_STATUS[outcome.status], outcome.reason
        say(f"  {outcome.status:<11} {outcome.elapsed_seconds:8.1f} s  {log.name}")
        if status != "passed":
            if outcome.status in ("failed", "timeout"):
                show_tail(log)
            break
        if number < len(plans):
            results.write(folder, record)
    shutil.rmtree(temporary, ignore_errors=True)
    record.update(status=status, reason=reason, finished_utc=results.utc_now(),
                  performance_measured=options.suite == "bench" and status == "passed")
    results.write(folder, record)
    return status


def run(options, plans_of, stop):
    """Exit status of the run that `options` ask for."""
    folder = log_folder(options)
    plans = plans_of(options, folder)
    if options.dry_run:
        say(json.dumps({"status": "planned_only", "suite": options.suite, "plans": [p.as_json() for p in plans]}, indent=2))
        return 0
    device = suites.device_of(options.suite)
    record = results.new_record(options.suite, plans, environment.source_sha256(ROOT),
                                environment.describe(options, device))
    make_folder(folder)
    claim(folder, record)
    say(f"{options.suite} ({device}): {len(plans)} command{'' if len(plans) == 1 else 's'}")
    status = run_plans(options, folder, plans, record, stop)
    say(f"{options.suite}: {status}{': ' + record['reason'] if record['reason'] else ''}")
    say(f"{folder / results.NAME}")
    return EXIT[status]


def main(arguments, plans_of=suites.plans_of):
    """The program. `plans_of(options, folder)` gives the commands."""
    stop = execute.Stop()
    stop.install()
    try:
        return run(parse(arguments), plans_of, stop)
    except UsageError as error:
        say(f"run_gradient_guard_regressions.py: {error}", sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        say(f"run_gradient_guard_regressions.py: cannot go on: {error.strerror}: {error.filename or 'log folder'}; "
            f"a {results.NAME} there is whole and says how far the run came", sys.stderr)
        return EXIT_CANNOT_WRITE
