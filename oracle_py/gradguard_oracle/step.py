# SPDX-License-Identifier: Apache-2.0
"""The guarded step of contract section 2 over groups read from files, as `gradguard step` defines them."""

from dataclasses import dataclass

import numpy as np

from . import safetensors_file
from .float32 import float32_from_text
from .safetensors_file import StoredTensor
from .statistics import group_stats
from .update import State, clip_multiplier, coefficients, update


@dataclass(frozen=True)
class Entry:
    """shape: of all operands; parameters: [n] float32; state None before the first update."""

    name: str
    shape: tuple
    parameters: np.ndarray
    state: State | None

    def operands(self):
        """{suffix in a file: [n] float32} of the parameters and the state."""
        arrays = {"param": self.parameters}
        if self.state is not None:
            arrays |= {"exp_avg": self.state.first, "exp_avg_sq": self.state.second}
            if self.state.maximum is not None:
                arrays["max_exp_avg_sq"] = self.state.maximum
        return arrays


@dataclass(frozen=True)
class StepReport:
    """stats None when nothing was scanned (Requested, Empty). skip_reason None when the group was updated."""

    stats: object
    gradient_scale: np.float32
    clip: np.float32
    skip_reason: str | None
    update_launches: int


def entry_names(tensors):
    """Names of the entries in a group, in byte order."""
    names = {name[: -len(".grad")] for name in tensors if name.endswith(".grad")}
    return sorted(names, key=lambda text: text.encode())


def read_entries(tensors, metadata, options):
    """Parameters and state of a first file, in byte order of the names."""
    entries = []
    for name in entry_names(tensors):
        parameter = tensors[f"{name}.param"]
        state = None
        if f"{name}.exp_avg" in tensors:
            step = int(metadata.get(f"{name}.step", metadata.get("step", "0")))
            state = State(
                step,
                tensors[f"{name}.exp_avg"].values(),
                tensors[f"{name}.exp_avg_sq"].values(),
                tensors[f"{name}.max_exp_avg_sq"].values() if options.amsgrad else None,
            )
        entries.append(Entry(name, parameter.shape, parameter.values(), state))
    return entries


def write_entries(path, entries, gradients, gradient_scale):
    """A first file: parameters, state (all entries that have one) and gradients, which can be stepped from."""
    tensors, metadata = {}, {"gradient_scale": float(gradient_scale).hex()}
    for entry in entries:
        for suffix, values in entry.operands().items():
            tensors[f"{entry.name}.{suffix}"] = StoredTensor.from_float32(values, entry.shape)
        if entry.state is not None:
            metadata[f"{entry.name}.step"] = str(entry.state.step)
    for name, stored in gradients.items():
        tensors[f"{name}.grad"] = stored
    safetensors_file.write(path, tensors, metadata)


def guarded_step(entries, gradients, gradient_scale, options, skip_update=False):
    """-> (new entries, StepReport). gradients: list of StoredTensor in the entries' order."""
    scale = np.float32(gradient_scale)
    if skip_update:
        return entries, StepReport(None, scale, np.float32(1), "Requested", 0)
    live = [index for index, entry in enumerate(entries) if len(entry.parameters)]
    if not live:
        return entries, StepReport(None, scale, np.float32(1), "Empty", 0)
    stats = group_stats(gradients, scale)
    if not stats.all_finite:
        return entries, StepReport(stats, scale, np.float32(1), "NonFinite", 0)
    clip = clip_multiplier(stats.total_norm, options)
    result = list(entries)
    for index in live:
        entry = entries[index]
        c = coefficients(options, entry.state.step if entry.state else 0, scale, clip)
        parameters, state = update(entry.parameters, gradients[index], entry.state, options, c)
        result[index] = Entry(entry.name, entry.shape, parameters, state)
    return result, StepReport(stats, scale, clip, None, len(live))


@dataclass(frozen=True)
class FileSteps:
    """What a list of files asks for: entries before the first step and, for each step, gradients and scale."""

    entries: list
    gradients: list
    scales: list


def read_files(paths, options, steps=None, gradient_scale=None):
    """gradient_scale: text that overrides every file's metadata. steps: repeats the last gradients up to that many."""
    entries, gradients, scales = None, [], []
    for path in paths:
        tensors, metadata = safetensors_file.read(path)
        if entries is None:
            entries = read_entries(tensors, metadata, options)
        gradients.append([tensors[f"{entry.name}.grad"] for entry in entries])
        scales.append(float32_from_text(gradient_scale or metadata.get("gradient_scale", "1")))
    while steps is not None and len(gradients) < steps:
        gradients.append(gradients[-1])
        scales.append(scales[-1])
    return FileSteps(entries, gradients, scales)


def run_files(paths, options, steps=None, gradient_scale=None, skip_update=False):
    """Replays consecutive steps -> [(entries after the step, StepReport)]."""
    plan = read_files(paths, options, steps, gradient_scale)
    entries, history = plan.entries, []
    for gradients, scale in zip(plan.gradients, plan.scales, strict=True):
        entries, report = guarded_step(entries, gradients, scale, options, skip_update)
        history.append((entries, report))
    return history
