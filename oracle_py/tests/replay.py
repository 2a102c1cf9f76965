# SPDX-License-Identifier: Apache-2.0
"""Runs groups through `gradguard_replay_groups` (tests/vectors): the library on the virtual GPU, many groups a call."""

import json
import subprocess
from dataclasses import dataclass

import numpy as np

from gradguard_oracle import safetensors_file
from gradguard_oracle.float32 import bits_of, same_bits
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import Entry, guarded_step
from gradguard_oracle.update import State, coefficients, illegal_elements

FLOAT_OPTIONS = ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "guard_epsilon")


def float_text(value):
    return f"0x{int(bits_of(np.array([value], np.float32))[0]):08X}"


def options_json(options, scale):
    """The members that the C++ side's read_options() wants."""
    fields = {name: float_text(getattr(options, name)) for name in FLOAT_OPTIONS}
    fields["gradient_scale"] = float_text(scale)
    fields["max_norm"] = None if options.max_norm is None else float_text(options.max_norm)
    return fields | {"amsgrad": options.amsgrad, "maximize": options.maximize}


def write_groups(path, groups):
    tensors, metadata = {}, {}
    for index, group in enumerate(groups):
        key = f"g{index:05}"
        steps = [entry.state.step if entry.state else 0 for entry in group.entries]
        names = [entry.name for entry in group.entries]
        described = options_json(group.options, group.scale) | {"entries": names, "steps": steps}
        metadata[key] = json.dumps(described)
        for entry, stored in zip(group.entries, group.gradients, strict=True):
            tensors[f"{key}/{entry.name}.grad"] = stored
            for suffix, values in entry.operands().items():
                tensors[f"{key}/{entry.name}.{suffix}"] = StoredTensor.from_float32(values)
    safetensors_file.write(path, tensors, metadata)


@dataclass(frozen=True)
class Result:
    """facts: the tool's metadata for the group; entries: Entry after the step."""

    facts: dict
    entries: list


def read_results(path, groups):
    tensors, metadata = safetensors_file.read(path)
    results = []
    for index, group in enumerate(groups):
        key = f"g{index:05}"
        facts, entries = json.loads(metadata[key]), []
        for entry, told in zip(group.entries, facts["entries"], strict=False):
            at = {
                suffix: tensors.get(f"{key}/{entry.name}.{suffix}")
                for suffix in ("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
            }
            arrays = {suffix: stored.values() for suffix, stored in at.items() if stored is not None}
            state = None
            if "exp_avg" in arrays:
                state = State(told["step"], arrays["exp_avg"], arrays["exp_avg_sq"], arrays.get("max_exp_avg_sq"))
            entries.append(Entry(entry.name, entry.shape, arrays["param"], state))
        results.append(Result(facts, entries))
    return results


class ReplayTool:
    """One process of the tool, kept for all calls."""

    def __init__(self, binary, folder):
        self.folder, self.jobs = folder, 0
        self.process = subprocess.Popen([str(binary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, groups, contracted=False):
        """-> [Result], one for each group."""
        given, made = self.folder / "groups.safetensors", self.folder / "results.safetensors"
        write_groups(given, groups)
        print("on" if contracted else "off", given, made, sep="\t", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        assert answer == "ok", answer or f"the tool ended with status {self.process.wait()}"
        return read_results(made, groups)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def describe(group, problem):
    sizes = [(stored.dtype, len(stored.bits)) for stored in group.gradients]
    return f"{problem}: gradients {sizes}, scale {group.scale!r}, {group.options}"


def problem_of_statistics(group, facts, report):
    """The first difference between the tool's facts and the oracle's StepReport; None when there is none."""
    want = {"error": None, "skip_reason": report.skip_reason, "clip_multiplier": float_text(report.clip)}
    stats = report.stats
    if stats is None:
        want["stats"] = None
    else:
        zero = np.float32(0)
        summaries = [
            [
                float_text(s.scale if s else zero),
                float_text(s.sumsq if s else zero),
                float_text(float(bool(s and s.bad))),
            ]
            for s in stats.summaries
        ]
        want["stats"] = {
            "total_norm": f"0x{int(np.float64(stats.total_norm).view(np.uint64)):016X}",
            "max_finite_abs": float_text(stats.max_finite_abs),
            "summaries": summaries,
        } | {
            name: getattr(stats, name)
            for name in ("all_finite", "elements", "tensors", "reduction_launches", "readback_bytes", "scratch_bytes")
        }
    for name, value in want.items():
        if facts[name] != value:
            return describe(group, f"{name}: got {facts[name]}, want {value}")
    return None


def problem_without_contraction(group, result):
    """The first difference of a run of the -fmad=false kernels from the oracle's bits, in words; None without one."""
    after, report = guarded_step(group.entries, group.gradients, group.scale, group.options)
    problem = problem_of_statistics(group, result.facts, report)
    if problem:
        return problem
    for old, want, got, told in zip(group.entries, after, result.entries, result.facts["entries"], strict=True):
        if told["updated"] != (want is not old) or told["step"] != (want.state.step if want.state else 0):
            return describe(group, f"{old.name}: got {told}")
        expected, found = want.operands(), got.operands()
        if expected.keys() != found.keys():
            return describe(group, f"{old.name}: got {list(found)}, want {list(expected)}")
        for suffix, values in expected.items():
            equal = same_bits(found[suffix], values)
            if not equal.all():
                at = int(np.argmin(equal))
                return describe(group, f"{old.name}.{suffix}[{at}]: got {found[suffix][at]!r}, want {values[at]!r}")
    return None


def problem_with_contraction(group, result):
    """The same for the contracted kernels: statistics as bits, updates within the legal set."""
    _, report = guarded_step(group.entries, group.gradients, group.scale, group.options)
    problem = problem_of_statistics(group, result.facts, report)
    if problem or report.skip_reason is not None:
        return problem
    for old, stored, new in zip(group.entries, group.gradients, result.entries, strict=True):
        if not len(old.parameters):
            continue
        c = coefficients(group.options, old.state.step if old.state else 0, group.scale, report.clip)
        flags = illegal_elements(old.parameters, stored, old.state, group.options, c, new.parameters, new.state)
        for suffix, illegal in flags.items():
            if illegal.any():
                return describe(group, f"{old.name}.{suffix}[{int(np.argmax(illegal))}] is no contraction")
    return None
