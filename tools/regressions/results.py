# SPDX-License-Identifier: Apache-2.0
"""results.json: the record of a run, whole at every moment."""
import datetime
import json
import os

SCHEMA = 1
NAME = "results.json"


class AlreadyUsed(Exception):
    """The folder has a results.json."""


def utc_now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_record(suite, plans, source_sha256, environment):
    return {
        "schema": SCHEMA,
        "suite": suite,
        "started_utc": utc_now(),
        "finished_utc": None,
        "status": "running",  # then passed, failed, blocked or interrupted
        "reason": None,
        "plans": [plan.as_json() for plan in plans],
        "results": [],
        "source_sha256": source_sha256,
        "environment": environment,
        "performance_measured": False,
    }


def new_result(plan, log_name, outcome):
    return {**plan.as_json(), "log": log_name, "status": outcome.status, "returncode": outcome.returncode,
            "elapsed_seconds": outcome.elapsed_seconds}


def write(folder, record, first=False):
    """Replaces folder/results.json in one step: whoever reads it sees the old record or the new one, also after a crash
    or on a full disk. `first`: there must be none yet, else AlreadyUsed. Raises OSError, with the old file intact."""
    text = json.dumps(record, indent=2) + "\n"
    try:
        replace(folder, text, first)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder / NAME)) from None


def replace(folder, text, first):
    temporary = folder / f".{NAME}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if first:
            try:
                os.link(temporary, folder / NAME)  # Unlike a rename it fails when another run was faster.
            except FileExistsError:
                raise AlreadyUsed from None
        else:
            os.replace(temporary, folder / NAME)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    sync_folder(folder)


def sync_folder(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
