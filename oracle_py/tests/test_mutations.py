# SPDX-License-Identifier: Apache-2.0
"""Each fault of numerics.md, "What must be caught", planted into the oracle itself, fails a test of the oracle.

A missing barrier is no fault of a formula; it is planted into the kernels (property_tests/planted).
"""

import dataclasses
import inspect
import itertools
import math
import sys

import numpy as np
import pytest
import test_literal_reading
import test_oracle_golden
from wrong_updates import FAULTS

from gradguard_oracle import statistics, step, update


def facts(module):
    """(name, call) for every test of a module without fixtures and drawn inputs, each with each of its parameters."""
    for name, function in vars(module).items():
        if not name.startswith("test_") or hasattr(function, "hypothesis"):
            continue
        choices = []
        for mark in getattr(function, "pytestmark", []):
            names = mark.args[0].replace(" ", "").split(",")
            choices.append([dict(zip(names, v if len(names) > 1 else (v,), strict=True)) for v in mark.args[1]])
        given = {k for part in choices for k in part[0]}
        if set(inspect.signature(function).parameters) != given:
            continue
        for chosen in itertools.product(*choices):
            arguments = {k: v for part in chosen for k, v in part.items()}
            yield f"{name}{arguments}", lambda f=function, a=arguments: f(**a)


# The quick ones first; long files and large arrays are left out.
SLOW = ("test_recorded", "test_large_sums", "test_fma", "test_accounting", "test_text", "test_powers_of_two")
ALL_FACTS = [f for m in (test_oracle_golden, test_literal_reading) for f in facts(m) if not f[0].startswith(SLOW)]


def first_failure():
    """The name of the first test that fails, None when all pass. A test that ends otherwise than in an assertion is a
    fault that does not run, and raises."""
    for name, call in ALL_FACTS:
        try:
            with np.errstate(all="ignore"):
                call()
        except AssertionError:
            return name
    return None


def replace_everywhere(monkeypatch, original, new):
    """Also in modules that imported it by name."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is original:
                monkeypatch.setattr(module, name, new)


def clip_per_tensor(p, stored, old, o, c, right=update.update):
    norm = statistics.group_stats([stored], np.float32(1) / c.r).total_norm
    return right(p, stored, old, o, dataclasses.replace(c, clip=update.clip_multiplier(norm, o)))


def squared_norm(total_norm, options, right=update.clip_multiplier):
    return right(total_norm * total_norm, options)


def clip_without_epsilon(total_norm, options, right=update.clip_multiplier):
    return right(total_norm, dataclasses.replace(options, guard_epsilon=np.float32(0)))


def step_in_fp32(options, completed, scale, clip, right=update.coefficients):
    return right(options, min(completed + 1, 2**24) - 1, scale, clip)  # adding 1 changes no larger FP32


def power_in_fp32(beta, t):
    value, base = np.float32(1), np.float32(beta)
    while t:
        value = value * base if t & 1 else value
        base *= base
        t >>= 1
    return float(value)


def maximum_drops_nan(old, new):
    return np.where((old == 0) & (new == 0), np.float32(0), np.fmax(old, new))


def only_first_tensor_checked(gradients, scale, right=statistics.group_stats):
    stats = right(gradients, scale)
    live = [s for s in stats.summaries if s is not None]
    if not live or live[0].bad:
        return stats
    total = sum(s.square for s in live)
    return dataclasses.replace(stats, all_finite=True, total_norm=math.sqrt(total))


def with_flags(change):
    """group_stats with each summary's flag changed: change(stored, summary) -> bool."""

    def wrong(gradients, scale, right=statistics.group_stats):
        stats = right(gradients, scale)
        summaries = [
            None if s is None else dataclasses.replace(s, bad=bool(change(stored, s)))
            for stored, s in zip(gradients, stats.summaries, strict=True)
        ]
        live = [s for s in summaries if s is not None]
        finite = not any(s.bad for s in live)
        norm = math.sqrt(sum(s.square for s in live)) if finite else math.inf
        return dataclasses.replace(stats, summaries=summaries, all_finite=finite, total_norm=norm)

    return wrong


flag_from_the_sum = with_flags(lambda stored, s: not np.isfinite(s.sumsq))
nan_passes_a_comparison = with_flags(lambda stored, s: (np.abs(stored.values()) > np.finfo(np.float32).max).any())


def tree_without_last_level(scale, sumsq):
    offset = statistics.THREADS // 2
    while offset > 1:
        scale, sumsq = statistics.merge(
            scale[:, :offset], sumsq[:, :offset], scale[:, offset : 2 * offset], sumsq[:, offset : 2 * offset]
        )
        offset //= 2
    return scale[:, 0], sumsq[:, 0]


def one_triple_too_many(scale, sumsq, blocks, right=statistics._serial_then_tree, last=[1]):  # noqa: B006
    """The second stage reads on behind the partial triples, where the summary of another tensor lies."""
    if last[0] > 1 and blocks == 1:
        scale, sumsq = (np.append(part, np.float32(1)) for part in (scale, sumsq))
    last[0] = blocks
    return right(scale, sumsq, blocks)


def empty_tensor_shifts(gradients, scale, right=statistics.group_stats):
    stats = right(gradients, scale)
    live = [s for s in stats.summaries if s is not None]
    return dataclasses.replace(stats, summaries=live + [None] * (len(gradients) - len(live)))


def reciprocal_instead_of_division(scale_a, sum_a, scale_b, sum_b):
    large, small = np.maximum(scale_a, scale_b), np.minimum(scale_a, scale_b)
    sum_large, sum_small = np.where(scale_a >= scale_b, (sum_a, sum_b), (sum_b, sum_a))
    inverse = np.divide(np.float32(1), large, out=np.zeros_like(large), where=large > 0)
    q = small * inverse
    return large, np.where(small > 0, sum_large + sum_small * (q * q), sum_large)


MUTATIONS = {name: (update.update, fault) for name, fault in FAULTS.items() if name != "nothing_happened"} | {
    "clip_per_tensor": (update.update, clip_per_tensor),
    "squared_norm_compared_with_max_norm": (update.clip_multiplier, squared_norm),
    "clip_without_epsilon": (update.clip_multiplier, clip_without_epsilon),
    "step_kept_as_fp32": (update.coefficients, step_in_fp32),
    "bias_power_in_fp32": (update.power, power_in_fp32),
    "maximum_that_drops_nan": (update.maximum, maximum_drops_nan),
    "only_first_tensor_checked": (statistics.group_stats, only_first_tensor_checked),
    "flag_inferred_from_the_sum": (statistics.group_stats, flag_from_the_sum),
    "nan_passes_a_comparison": (statistics.group_stats, nan_passes_a_comparison),
    "tree_skips_its_last_level": (statistics._tree, tree_without_last_level),
    "one_triple_too_many": (statistics._serial_then_tree, one_triple_too_many),
    "empty_tensor_shifts_the_next": (statistics.group_stats, empty_tensor_shifts),
    "reciprocal_of_the_scale": (statistics.merge, reciprocal_instead_of_division),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mutation_of_the_oracle_fails_a_test(monkeypatch, mutation):
    replace_everywhere(monkeypatch, *MUTATIONS[mutation])
    assert first_failure() is not None


def test_the_oracle_as_it_is_fails_none():
    assert first_failure() is None
    assert step.update is update.update
