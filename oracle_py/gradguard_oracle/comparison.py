# SPDX-License-Identifier: Apache-2.0
"""The oracle against PyTorch, key by key, over several steps with a common state: PyTorch's own after each step.

Each side must lie within what FP32 can make of its own formula from its own operands (enclosure.py). Then both formulas
are evaluated from what both sides had: as readings of one formula they must overlap in every element. How far apart the
sides are is told in FP32 units and as a fraction of the hull of those two enclosures, the most that they may differ.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from . import norms, pytorch
from .enclosure import (
    Inputs,
    clipped,
    contract_moments,
    contract_parameters,
    pytorch_moments,
    pytorch_parameters,
    real_coefficients,
)
from .float32 import ulps_between
from .interval import Interval, maximum
from .statistics import reciprocal
from .step import guarded_step
from .update import coefficients, effective_gradient

KEYS = ("total_norm", "gradient", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "param")


@dataclass
class Difference:
    """Of one key over any number of elements. fraction: of the hull's width. outside: problems, in words."""

    elements: int = 0
    different: int = 0
    ulp: int = 0
    fraction: float = 0.0
    outside: list = field(default_factory=list)

    def add(self, other):
        self.elements += other.elements
        self.different += other.different
        self.ulp = max(self.ulp, other.ulp)
        self.fraction = max(self.fraction, other.fraction)
        self.outside += other.outside
        return self


@dataclass(frozen=True)
class Sides:
    """One key of one entry: both sides' values [n] float32, the enclosure of each from its own operands, and the
    enclosures of both formulas from what both sides had."""

    ours: np.ndarray
    theirs: np.ndarray
    our_own: Interval
    their_own: Interval
    our_common: Interval
    their_common: Interval

    def hull(self):
        return Interval.hull(self.our_common, self.their_common)


def compare(sides, where=""):
    """-> Difference. Outside means: not (lo <= value <= hi), and NaN is always outside."""
    ours, theirs = np.atleast_1d(sides.ours), np.atleast_1d(sides.theirs)
    outside = []
    for side, values, enclosure in (("oracle", ours, sides.our_own), ("PyTorch", theirs, sides.their_own)):
        inside = np.atleast_1d(enclosure.contains(values))
        if not inside.all():
            at = int(np.argmin(inside))
            lo, hi = (float(np.broadcast_to(end, inside.shape)[at]) for end in (enclosure.lo, enclosure.hi))
            outside.append(f"{where}[{at}] of {side}: {values[at]!r} is not in [{lo!r}, {hi!r}]")
    overlap = (sides.our_common.lo <= sides.their_common.hi) & (sides.their_common.lo <= sides.our_common.hi)
    if not np.all(overlap):
        at = int(np.argmin(np.atleast_1d(overlap)))
        outside.append(f"{where}[{at}]: the formulas differ, oracle {ours[at]!r}, PyTorch {theirs[at]!r}")
    hull = sides.hull()
    width = np.atleast_1d(hull.hi - hull.lo)
    apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    fraction = np.divide(apart, width, out=np.where(apart > 0, np.inf, 0.0), where=width > 0)
    ulps = ulps_between(ours, theirs)
    return Difference(
        len(ours), int((ulps > 0).sum()), int(ulps.max(initial=0)), float(fraction.max(initial=0)), outside
    )


def inputs_of(entry):
    """Inputs of an Entry; zeros where there is no state or no maximum."""
    zeros = np.zeros(len(entry.parameters), np.float32)
    state = entry.state
    if state is None:
        return Inputs(entry.parameters, zeros, zeros, zeros, 0)
    return Inputs(
        entry.parameters, state.first, state.second, zeros if state.maximum is None else state.maximum, state.step
    )


def _float_interval(low_square, high_square):
    """Interval of float64 ends around the roots of two Fractions."""

    def root(value, direction):
        x = float(value) ** 0.5  # within a few FP64 units; four steps further are certainly outside
        for _ in range(4):
            x = np.nextafter(x, direction)
        return x

    return Interval(max(root(low_square, -np.inf), 0.0), root(high_square, np.inf))


def norm_intervals(gradients, scale, stats):
    """(contract's total_norm, PyTorch's) as Intervals."""
    values = [norms.good_values(stored, scale) for stored in gradients]
    ours = _float_interval(*norms.norm_enclosure(stats, [norms.tree_error(v) for v in values if len(v)]))
    factor = norms.any_order_factor(max(len(v) for v in values), len(values))
    # Squares below FP32's normal range lose up to 2^-150 each.
    lost = Fraction(sum(len(v) for v in values), 2**148)
    low = max(Fraction(stats.exact_norm / factor) ** 2 - lost, Fraction(0))
    high = Fraction(stats.exact_norm * factor) ** 2 + lost
    return ours, _float_interval(low, high)


@dataclass(frozen=True)
class StepComparison:
    """differences: {key: Difference}; ours, theirs: entries after the step; hulls: for each entry {key: Interval},
    which holds every evaluation of either formula."""

    differences: dict
    ours: list
    theirs: list
    hulls: list


def compare_step(entries, gradients, scale, options, variant):
    """One guarded step of the oracle and one of PyTorch from the same non-empty entries; the group must be good."""
    ours, report = guarded_step(entries, gradients, scale, options)
    if report.skip_reason is not None:
        raise ValueError(f"the guard skips this group ({report.skip_reason}); PyTorch never does")
    unscaled = [stored.values() * reciprocal(scale) for stored in gradients]
    theirs = pytorch.step(entries, unscaled, options, variant)
    differences, hulls = {}, []
    if theirs.norm is not None:
        our_norm, their_norm = norm_intervals(gradients, scale, report.stats)
        # The contract's norm is FP64; shown and compared as the nearest FP32, which rounding once more encloses.
        our_float = np.float32(report.stats.total_norm)
        sides = Sides(our_float, theirs.norm, our_norm.rounded(), their_norm, our_norm.rounded(), their_norm)
        differences["total_norm"] = compare(sides, "total_norm")
    for index, old in enumerate(entries):
        c = coefficients(options, old.state.step if old.state else 0, scale, report.clip)
        g = (effective_gradient(gradients[index], c, maximize=False), theirs.gradients[index])
        found = compared_operands(old, ours[index], theirs.entries[index], g, options, c)
        if theirs.norm is not None:
            both = Interval.hull(Interval.of(report.stats.total_norm), Interval.of(theirs.norm))
            common = clipped(unscaled[index], both, options.max_norm)
            their_own = clipped(unscaled[index], theirs.norm, options.max_norm)
            found["gradient"] = Sides(*g, Interval.of(g[0]), their_own, common, common)
        hulls.append({key: sides.hull() for key, sides in found.items()})
        for key, sides in found.items():
            differences.setdefault(key, Difference()).add(compare(sides, f"{old.name}.{key}"))
    return StepComparison(differences, ours, theirs.entries, hulls)


def _both(a, b):
    return Interval.hull(Interval.of(a), Interval.of(b))


def compared_operands(old, ours, theirs, g, options, c):
    """{key: Sides} of an entry's update; g: the gradients that either side's AdamW got, before maximize."""
    inputs, real = inputs_of(old), real_coefficients(options, old.state.step if old.state else 0, c)
    sign = np.float32(-1 if options.maximize else 1)
    our_g, their_g = sign * g[0], sign * g[1]
    both_g = _both(our_g, their_g)
    our_m, our_v = contract_moments(inputs, our_g, options, c)
    their_m, their_v = pytorch_moments(inputs, their_g, options)
    common_m, common_v = contract_moments(inputs, both_g, options, real)
    their_common_m, their_common_v = pytorch_moments(inputs, both_g, options)
    found = {
        "exp_avg": Sides(ours.state.first, theirs.state.first, our_m, their_m, common_m, their_common_m),
        "exp_avg_sq": Sides(ours.state.second, theirs.state.second, our_v, their_v, common_v, their_common_v),
    }
    our_x, their_x = ours.state.second, theirs.state.second
    if options.amsgrad:
        # A maximum is exact: from the stored v there is one value.
        own = (Interval.of(np.maximum(inputs.maximum, x)) for x in (our_x, their_x))
        common = (maximum(inputs.maximum, v) for v in (common_v, their_common_v))
        our_x, their_x = ours.state.maximum, theirs.state.maximum
        found["max_exp_avg_sq"] = Sides(our_x, their_x, *own, *common)
    both_m, both_x = _both(ours.state.first, theirs.state.first), _both(our_x, their_x)
    found["param"] = Sides(
        ours.parameters,
        theirs.parameters,
        contract_parameters(inputs, ours.state.first, our_x, options, c),
        pytorch_parameters(inputs, theirs.state.first, their_x, options),
        contract_parameters(inputs, both_m, both_x, options, real),
        pytorch_parameters(inputs, both_m, both_x, options),
    )
    return found


def compare_steps(entries, gradients_of_steps, scales, options, variant):
    """Consecutive steps, each from PyTorch's own state after the one before it -> [StepComparison]."""
    results = []
    for gradients, scale in zip(gradients_of_steps, scales, strict=True):
        results.append(compare_step(entries, gradients, scale, options, variant))
        entries = results[-1].theirs
    return results


def total(results):
    """{key: Difference} of several StepComparisons together."""
    differences = {}
    for result in results:
        for key, difference in result.differences.items():
            differences.setdefault(key, Difference()).add(difference)
    return {key: differences[key] for key in KEYS if key in differences}
