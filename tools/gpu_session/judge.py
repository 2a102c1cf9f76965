# SPDX-License-Identifier: Apache-2.0
"""What a command's end means: (status, reason, data). Status is passed, failed or blocked."""
import json
import re

UNSUPPORTED = re.compile(r"^gradguard: (?:UnsupportedDevice|DeviceUnavailable): (.*)", re.MULTILINE)
MOST_SHOWN = 10


def ended(returncode):
    return f"exit status {returncode}" if returncode >= 0 else f"ended by signal {-returncode}"


def last_line(log):
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def text(returncode, log):
    if returncode == 0:
        return "passed", None, {"output": log.strip().splitlines()}
    return "failed", f"{ended(returncode)}: {last_line(log)}", None


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def gtest(path):
    """Of a GoogleTest program that writes its JSON there."""
    def verdict(returncode, log):
        try:
            cases = [case for suite in load(path)["testsuites"] for case in suite["testsuite"]]
        except (OSError, ValueError, KeyError) as error:
            return "failed", f"{ended(returncode)}, and its results cannot be read: {error}", None
        failed = [f"{case['classname']}.{case['name']}" for case in cases if case.get("failures")]
        skipped = [case for case in cases if case.get("result") == "SKIPPED"]
        passed = [case for case in cases if case.get("result") == "COMPLETED" and not case.get("failures")]
        data = {"tests": len(cases), "passed": len(passed), "failed": failed, "blocked": len(skipped)}
        if failed or returncode != 0:
            return "failed", f"{len(failed)} of {len(cases)} tests failed: {', '.join(failed[:MOST_SHOWN])}" if failed \
                else f"{ended(returncode)}: {last_line(log)}", data
        if skipped:
            words = re.search(r"blocked: (.*)", log) or re.search(r"blocked: (.*)", json.dumps(skipped[0]))
            reason = words.group(1) if words else "no reason given"
            return "blocked", f"{len(skipped)} of {len(cases)} tests could not run: {reason}", data
        if not passed:
            return "failed", "no test ran", data
        return "passed", None, data
    return verdict


def program(returncode, log):
    """Of the program gradguard, when it did not succeed."""
    match = UNSUPPORTED.search(log)
    if returncode == 4 and match:
        return "blocked", match.group(1), None
    return "failed", f"{ended(returncode)}: {last_line(log)}", None


def check(returncode, log):
    if returncode != 0:
        return program(returncode, log)
    match = re.search(r'"cases":\s*(\d+)', log)
    corpus = re.search(r'"corpus_cases":\s*(\d+)', log)
    return "passed", None, {"cases": int(match.group(1)) if match else None,
                            "corpus_cases": int(corpus.group(1)) if corpus else None}


def bench(path):
    """Of `gradguard bench step` that writes its report there."""
    def verdict(returncode, log):
        if returncode != 0:
            return program(returncode, log)
        try:
            report = load(path)
            seconds = {one["name"]: one["step_seconds"]["median"] for one in report["paths"]}
            copy = report["copy"]
            guarded = next(one for one in report["paths"] if one["name"] == "guarded")
            data = {"elements": report["configuration"]["elements"], "dtype": report["configuration"]["dtype"],
                    "device": report["configuration"]["device"], "hardware_time": report["hardware_time"],
                    "step_seconds": seconds,
                    "bytes_per_element": guarded["bytes_per_element"],
                    "copy_bytes_per_second": copy["bytes_per_second"] if copy else None}
        except (OSError, ValueError, KeyError, StopIteration) as error:
            return "failed", f"its report cannot be read: {error!r}", None
        return "passed", None, data
    return verdict


def torch(path):
    def verdict(returncode, log):
        try:
            report = load(path)
        except (OSError, ValueError):
            report = None
        if returncode == 2:
            return "blocked", last_line(log), None
        if returncode != 0 or report is None:
            return "failed", f"{ended(returncode)}: {last_line(log)}", report
        return "passed", None, report
    return verdict
