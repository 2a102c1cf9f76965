# SPDX-License-Identifier: Apache-2.0
"""The NumPy oracle against a second reading of the contract, number by number in rationals (literal.py)."""

import dataclasses
from fractions import Fraction

import literal
import numpy as np
import pytest
import random_groups as groups
from hypothesis import given, settings
from hypothesis import strategies as st

from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import guarded_step
from gradguard_oracle.update import Options

F32 = np.float32
STRONG = Options(learning_rate=F32(0.125), epsilon=F32(0.25), weight_decay=F32(0.25))
SHAPES = [(0,), (3,), (0,), (260,), (5,)]


def scenario(seed, shapes, options, step, dtypes=("F32", "F16", "BF16"), size=1.0):
    rng = np.random.default_rng(seed)
    entries, gradients = [], []
    for index, shape in enumerate(shapes):
        entries.append(groups.parameters(rng, f"e{index}", shape, step, options.amsgrad))
        gradients.append(groups.ordinary(rng, dtypes[index % len(dtypes)], shape, size))
    return entries, gradients


def check(entries, gradients, scale, options):
    want = literal.step(entries, gradients, scale, options)
    after, report = guarded_step(entries, gradients, F32(scale), options)
    assert report.skip_reason is None and report.stats.total_norm == want.total_norm
    assert Fraction(float(report.clip)) == want.clip
    for summary, pair in zip(report.stats.summaries, want.summaries, strict=True):
        got = None if summary is None else (Fraction(float(summary.scale)), Fraction(float(summary.sumsq)))
        assert got == pair
    for old, entry, update in zip(entries, after, want.updates, strict=True):
        if update is None:
            assert entry is old
            continue
        assert entry.state.step == (old.state.step if old.state else 0) + 1
        arrays = entry.operands()
        assert arrays.keys() == update.keys()
        for suffix, values in update.items():
            assert literal.fractions(arrays[suffix]) == values, f"{old.name}.{suffix}"


@pytest.mark.parametrize("step", [None, 1, 6])
@pytest.mark.parametrize("maximize", [False, True], ids=["minimize", "maximize"])
@pytest.mark.parametrize("amsgrad", [False, True], ids=["adamw", "amsgrad"])
@pytest.mark.parametrize("max_norm", [0.7, 1e6], ids=["clipped", "within"])
def test_oracle_and_literal_reading_agree(amsgrad, maximize, max_norm, step):
    options = dataclasses.replace(STRONG, amsgrad=amsgrad, maximize=maximize, max_norm=F32(max_norm))
    check(*scenario(51, SHAPES, options, step), 3.0, options)


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 1023, 1024, 1025, 2049])
def test_reductions_agree_across_the_geometry(count):
    check(*scenario(52, [(count,)], STRONG, None, dtypes=("F32",)), 1.0, STRONG)


@pytest.mark.parametrize("step", [2**24, 2**24 + 1, 3 * 2**23])
def test_steps_beyond_fp32_agree(step):
    options = dataclasses.replace(STRONG, beta2=np.nextafter(F32(1), F32(0)))
    check(*scenario(53, [(4,)], options, step), 1.0, options)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=3).filter(any),
    scale=st.sampled_from([1.0, 3.0, 1024.0, 2.0**-6]),
    exponent=st.integers(-30, 10),
    step=st.none() | st.integers(1, 1000),
    flags=st.tuples(st.booleans(), st.booleans()),
    max_norm=st.floats(2.0**-10, 2.0**10, width=32),
)
def test_drawn_groups_agree(seed, sizes, scale, exponent, step, flags, max_norm):
    options = dataclasses.replace(STRONG, amsgrad=flags[0], maximize=flags[1], max_norm=F32(max_norm))
    check(*scenario(seed, [(n,) for n in sizes], options, step, size=2.0**exponent), scale, options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("tensor", [1, 3, 4])
def test_one_bad_element_in_any_tensor_skips_the_group_and_is_named(tensor, bad):
    entries, gradients = scenario(54, SHAPES, STRONG, 2)
    values = gradients[tensor].values().copy()
    values[-1] = bad
    gradients[tensor] = StoredTensor.from_float32(values)
    after, report = guarded_step(entries, gradients, F32(1), STRONG)
    assert after is entries and report.skip_reason == "NonFinite" and report.stats.total_norm == np.inf
    located = [i for i, s in enumerate(report.stats.summaries) if s is not None and s.bad]
    assert located == [tensor] and report.stats.summaries[tensor].first_bad == len(values) - 1
