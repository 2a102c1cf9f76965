# SPDX-License-Identifier: Apache-2.0
"""What a subject returns for a case, brought into one form: a GuardedAdamWUpdate."""

import math

import numpy as np

from . import _core


def _get(thing, name, default=None):
    """Member of a mapping or attribute of an object."""
    if isinstance(thing, dict):
        return thing.get(name, default)
    return getattr(thing, name, default)


def _f32(array):
    return np.ascontiguousarray(array, np.float32)


def _skip_reason(reason):
    if reason is None or isinstance(reason, _core.SkipReason):
        return reason
    if reason is True:
        return _core.SkipReason.NonFinite
    if reason is False:
        return None
    try:
        return getattr(_core.SkipReason, reason)
    except (AttributeError, TypeError):
        raise ValueError(f"skipped: want True, False or a SkipReason, got {reason!r}") from None


def _report(case, total_norm):
    """A report around a subject's norm; what the subject does not say is filled in and so not judged."""
    greatest, bad, elements = np.float32(0), False, 0
    for entry in case.entries:
        with np.errstate(all="ignore"):
            raw = entry.gradients.astype(np.float32)
            value = np.abs(raw * (np.float32(1) / np.float32(case.control.gradient_scale)))
        good = np.isfinite(raw) & np.isfinite(value)
        bad = bad or not good.all()
        elements += raw.size
        greatest = max(greatest, value[good].max(initial=np.float32(0)))
    stats = _core.GradientStats(
        total_norm=math.inf if bad and math.isnan(total_norm) else total_norm,
        max_finite_abs=float(greatest),
        all_finite=not bad,
        elements=elements,
        tensors=len(case.entries),
        gradient_scale=case.control.gradient_scale,
    )
    return _core.GradientStatsReport(stats)


def _update(entry, result, skipped):
    if isinstance(result, _core.AdamWUpdate):
        return result
    parameters = _get(result, "parameters")
    if parameters is None:
        raise ValueError("an entry of the outcome has no parameters")
    updated = _get(result, "updated", not skipped and np.size(entry.parameters) > 0)
    if not updated:
        return _core.AdamWUpdate(_f32(parameters), entry.state, False)
    maximum = _get(result, "max_second_moment")
    step = _get(result, "step")
    state = _core.AdamWState(
        step=int(step) if step is not None else (entry.state.step if entry.state else 0) + 1,
        first_moment=_f32(_get(result, "first_moment")),
        second_moment=_f32(_get(result, "second_moment")),
        max_second_moment=None if maximum is None else _f32(maximum),
    )
    return _core.AdamWUpdate(_f32(parameters), state, True)


def normalised(case, outcome):
    """The outcome of a subject as a GuardedAdamWUpdate; NotImplemented stays.

    outcome: a GuardedAdamWUpdate, AdamWUpdate or GradientStatsReport; or a dict or object with `entries` (for each
    entry parameters, first_moment, second_moment, max_second_moment, optionally step and updated), `total_norm`,
    `clip_multiplier` (or `clip`), `skipped` (or `skip_reason`); or the list of entries alone.
    """
    if outcome is NotImplemented or isinstance(outcome, _core.GuardedAdamWUpdate):
        return outcome
    if isinstance(outcome, _core.GradientStatsReport):
        return _core.GuardedAdamWUpdate([], report=outcome)
    if isinstance(outcome, _core.AdamWUpdate):
        return _core.GuardedAdamWUpdate([outcome])
    if isinstance(outcome, (list, tuple)):
        outcome = {"entries": outcome}
    reason = _skip_reason(_get(outcome, "skip_reason", _get(outcome, "skipped")))
    results = _get(outcome, "entries")
    if results is None:
        results = [] if case.operation == "statistics" else case.entries
    if case.operation != "statistics" and len(results) != len(case.entries):
        raise ValueError(f"want {len(case.entries)} entries in the outcome, got {len(results)}")
    norm, report = _get(outcome, "total_norm"), _get(outcome, "report")
    clip = _get(outcome, "clip_multiplier", _get(outcome, "clip", 1.0))
    return _core.GuardedAdamWUpdate(
        [_update(entry, result, reason is not None) for entry, result in zip(case.entries, results, strict=False)],
        report=_report(case, float(norm)) if report is None and norm is not None else report,
        clip_multiplier=float(clip),
        skip_reason=reason,
    )
