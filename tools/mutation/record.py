# SPDX-License-Identifier: Apache-2.0
"""The data: equivalent.json (argued survivors), results.json (the last full run), and the report.

equivalent.json: {"equivalent": [{"level", "file", "original", "mutated", "argument", "check"}]}. An entry is about the
mutants of that level and file whose changed lines are these, wherever they stand: `original` and `mutated` are texts of
Mutant, several lines joined by newlines. "level" and "file" may end in "*". `argument` says why no legal input shows the
difference, `check` names what shows it by computation: a test (suite and name) or "" where only the argument stands.

results.json: {"device": {"mutants", "killed", "equivalent", "survivors"}, "host": {the same}, "runs": {"device": {...}}}.
The four are counts of distinct mutants: those that do not compile and those that compile to the same text as another or
as the unmutated sources are left out. "runs" says of each: date, SHA-256 of the sources, battery and equivalents by
name, CPU seconds, what was left out, and the survivors with their diffs.
"""
import collections
import datetime
import fnmatch
import json

from .engine import DISTINCT, STATUSES, MutationError, Verdict, file_digest, sha256
from .runner import write_atomically

FOLDER = "property_tests/mutation"
EQUIVALENT, RESULTS = f"{FOLDER}/equivalent.json", f"{FOLDER}/results.json"
FIELDS = ("level", "file", "original", "mutated", "argument", "check")
LEAST = {"device": (400, 0.97), "host": (200, 0.95)}  # mutants; share that is killed or argued equivalent


def levels_of(target_name):
    return ("cuda", "ptx") if target_name == "device" else ("host",)


def read_equivalents(root, target_name):
    """The entries about a target. Raises MutationError for one that is not in the form above."""
    path = root / EQUIVALENT
    entries = json.loads(path.read_text())["equivalent"] if path.is_file() else []
    for number, entry in enumerate(entries):
        if set(entry) != set(FIELDS) or not all(isinstance(entry[field], str) for field in FIELDS):
            raise MutationError(f"{EQUIVALENT}, entry {number}: want the texts {', '.join(FIELDS)}, got {list(entry)}")
        for field in ("file", "original", "argument"):
            if not entry[field].strip():
                raise MutationError(f"{EQUIVALENT}, entry {number}: {field} is empty")
    return [e for e in entries if any(fnmatch.fnmatchcase(level, e["level"]) for level in levels_of(target_name))]


def lines_of(text):
    return [line.strip() for line in text.strip().splitlines()]


def matches(entry, mutant):
    return (fnmatch.fnmatchcase(mutant.level, entry["level"]) and fnmatch.fnmatchcase(mutant.file, entry["file"]) and
            lines_of(mutant.original) == lines_of(entry["original"]) and
            lines_of(mutant.mutated) == lines_of(entry["mutated"]))


def settle(mutants, verdicts, entries):
    """The verdicts with those survivors made equivalent that are argued, and what is wrong with the entries: one about a
    mutant that was killed, and, where all mutants have a verdict, one about none."""
    settled, problems = dict(verdicts), []
    whole = all(mutant.id in verdicts for mutant in mutants)
    for entry in entries:
        about = [m for m in mutants if matches(entry, m) and m.id in verdicts]
        where = f"{entry['file']}: {entry['original'].strip()!r} -> {entry['mutated'].strip()!r}"
        if whole and not any(verdicts[m.id].status == "survived" for m in about):
            problems.append(f"{EQUIVALENT} argues about a mutant that did not survive: {where}")
        for mutant in about:
            verdict = verdicts[mutant.id]
            if verdict.status == "killed":
                problems.append(f"{EQUIVALENT} calls a mutant equivalent that {verdict.by} killed: {where}")
            elif verdict.status == "survived":
                settled[mutant.id] = Verdict("equivalent", detail=entry["argument"], seconds=verdict.seconds,
                                             fingerprint=verdict.fingerprint)
    return settled, problems


def counts_of(verdicts):
    counts = collections.Counter(verdict.status for verdict in verdicts)
    return {"mutants": sum(counts[s] for s in DISTINCT), "killed": counts["killed"], "equivalent": counts["equivalent"],
            "survivors": counts["survived"]}


def threshold_problem(name, counts):
    """Why the counts of a target do not reach what is wanted; empty if they do."""
    least, share = LEAST[name]
    accounted = counts["killed"] + counts["equivalent"]
    if counts["mutants"] < least:
        return f"{name}: want at least {least} distinct mutants, got {counts['mutants']}"
    if accounted < share * counts["mutants"]:
        return (f"{name}: want at least {share:.0%} killed or argued equivalent, got {accounted} of "
                f"{counts['mutants']} ({accounted / counts['mutants']:.1%})")
    return ""


def table(mutants, verdicts):
    """Rows by level and operator, columns by status."""
    rows = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        if mutant.id in verdicts:
            rows[f"{mutant.level} {mutant.operator}"][verdicts[mutant.id].status] += 1
            rows["all"][verdicts[mutant.id].status] += 1
    total = rows.pop("all", collections.Counter())
    lines = [f"{'operator':<34}" + "".join(f"{s:>12}" for s in STATUSES)]
    for name, counts in [*sorted(rows.items()), ("all", total)]:
        lines.append(f"{name:<34}" + "".join(f"{counts[s]:>12}" for s in STATUSES))
    return "\n".join(lines)


def killers(verdicts):
    """How many mutants each test killed, most first."""
    by = collections.Counter(verdict.by for verdict in verdicts.values() if verdict.status == "killed")
    return "\n".join(f"{count:>6}  {name}" for name, count in by.most_common())


def survivors(mutants, verdicts):
    return [m for m in mutants if m.id in verdicts and verdicts[m.id].status == "survived"]


def report(mutants, verdicts):
    """What a person reads: table and survivors with their diffs."""
    left = survivors(mutants, verdicts)
    text = [table(mutants, verdicts), ""]
    for mutant in left:
        text.append(f"survived: {mutant.id} ({mutant.operator}): {mutant.description}\n{mutant.diff}")
    used = sum(verdict.seconds for verdict in verdicts.values())
    slowest = max(verdicts.values(), key=lambda verdict: verdict.seconds, default=None)
    counts = counts_of(verdicts.values())
    if slowest:
        text.append(f"{counts['mutants']} distinct mutants: {counts['killed']} killed, {counts['equivalent']} argued "
                    f"equivalent, {counts['survivors']} survived; {used:.0f} CPU seconds, at most {slowest.seconds:.1f} "
                    f"for one")
    return "\n".join(text)


def run_record(root, target, mutants, verdicts):
    statuses = collections.Counter(verdict.status for verdict in verdicts.values())
    digests = lambda names: {name: file_digest(root, name) for name in sorted(names)}  # noqa: E731
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "sources": digests(target.sources()),
        "battery": {"sha256": sha256(json.dumps(target.battery())), "parts": target.battery()},
        "equivalents_sha256": sha256(json.dumps(read_equivalents(root, target.name), sort_keys=True)),
        "cpu_seconds": round(sum(verdict.seconds for verdict in verdicts.values())),
        "longest_cpu_seconds": max((verdict.seconds for verdict in verdicts.values()), default=0),
        "left_out": {"identical": statuses["identical"], "invalid": statuses["invalid"]},
        "survivors": [{"id": m.id, "operator": m.operator, "description": m.description, "diff": m.diff}
                      for m in survivors(mutants, verdicts)],
    }


def write_results(root, target, mutants, verdicts):
    """Puts a full run into results.json. Raises MutationError for one that is not full."""
    missing = [mutant.id for mutant in mutants if mutant.id not in verdicts]
    if missing:
        raise MutationError(f"only a full run is written: {len(missing)} mutants have no verdict, {missing[0]} among them")
    path = root / RESULTS
    whole = json.loads(path.read_text()) if path.is_file() else {}
    runs = whole.pop("runs", {})
    whole[target.name] = counts_of(verdicts.values())
    runs[target.name] = run_record(root, target, mutants, verdicts)
    ordered = {name: whole[name] for name in ("device", "host") if name in whole}
    ordered["runs"] = {name: runs[name] for name in ("device", "host") if name in runs}
    write_atomically(path, json.dumps(ordered, indent=2) + "\n")


def changed_sources(root):
    """What is missing of the two full runs on record, and sources that changed since, as sentences."""
    path = root / RESULTS
    runs = json.loads(path.read_text())["runs"] if path.is_file() else {}
    missing = [f"no full run of {target} is on record: run tools/mutate {target} --write"
               for target in LEAST if target not in runs]
    return missing + [f"{name} changed since the last full mutation run: run tools/mutate {target} --write"
                      for target, run in runs.items()
                      for name, digest in run["sources"].items() if file_digest(root, name) != digest]
