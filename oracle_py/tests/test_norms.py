# SPDX-License-Identifier: Apache-2.0
"""Three norms of the same values: section 4's FP32 tree, plain FP64, and exact integers."""

import math
from fractions import Fraction

import drawn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradguard_oracle import norms
from gradguard_oracle.float32 import bits_of
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.statistics import exact_sum_of_squares, group_stats, merge, summarize


def finite_values(max_size=40):
    pattern = st.one_of(
        st.sampled_from([int(p) for p in drawn.edges("F32")]),
        st.integers(0, 2**32 - 1).filter(lambda p: p & 0x7F800000 != 0x7F800000),
    )
    return st.lists(pattern, max_size=max_size).map(lambda p: np.array(p, np.uint32).view(np.float32))


def exact_square(values):
    return sum((Fraction(float(v)) ** 2 for v in values), Fraction(0))


@given(values=finite_values())
def test_integer_sum_is_the_fractions_sum(values):
    assert exact_sum_of_squares(np.abs(values)) * norms.SQUARE_UNIT == exact_square(values)


@given(values=finite_values())
def test_exact_norm_is_the_root_rounded_once(values):
    norm = group_stats([StoredTensor.from_float32(values)], 1).exact_norm
    exact = exact_square(values)
    below, above = (Fraction(float(np.nextafter(norm, end))) for end in (-np.inf, np.inf))
    norm = Fraction(norm)
    assert max(below + norm, 0) ** 2 <= 4 * exact <= (norm + above) ** 2


def one_step_apart(a, b):
    return np.nextafter(a, -np.inf) <= b <= np.nextafter(a, np.inf)


@given(values=finite_values())
def test_fp64_norm_is_next_to_the_exact_one(values):
    assert one_step_apart(group_stats([StoredTensor.from_float32(values)], 1).exact_norm, norms.fp64_norm([values]))


def enclosed(stored, scale):
    """Whether the contract's norm of the tensors lies within the bound that is computed for them."""
    stats = group_stats(stored, scale)
    good = [norms.good_values(tensor, scale) for tensor in stored]
    low, high = norms.norm_enclosure(stats, [norms.tree_error(values) for values in good if len(values)])
    return low <= Fraction(stats.total_norm) ** 2 <= high


@settings(max_examples=200)
@given(parts=st.lists(finite_values(), min_size=1, max_size=4), scale=st.sampled_from([1.0, 3.0, 2.0**40]))
def test_tree_norm_is_within_its_bound(parts, scale):
    stored = [StoredTensor.from_float32(values) for values in parts]
    if all(group_stats([tensor], scale).all_finite for tensor in stored):
        assert enclosed(stored, scale)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("fill", drawn.FILLS)
def test_tree_norm_is_within_its_bound_for_every_class_and_geometry(dtype, fill):
    rng = np.random.default_rng(61)
    for size in (1, 33, 257, 1025, 4097, 65537):
        stored = [StoredTensor(dtype, (size,), drawn.values(rng, dtype, size, fill))]
        assert enclosed(stored, 1.0)


def test_the_bound_is_attained():
    """One 1, then 2^-12 at positions 1, 2, 4, ..., 128 (numerics, "Norm"): every addition drops its whole summand."""
    values = np.zeros(256, np.float32)
    values[0] = 1
    values[[1, 2, 4, 8, 16, 32, 64, 128]] = 2.0**-12
    summary = summarize(StoredTensor.from_float32(values), 1)
    lost = exact_square(values) - Fraction(summary.square)
    assert lost == Fraction(8, 2**24)
    bound = Fraction(norms.tree_error(values))
    assert lost <= bound < lost * Fraction(101, 100)


def test_a_tree_that_lost_a_summand_is_outside():
    values = np.random.default_rng(62).normal(size=256).astype(np.float32)
    stats = group_stats([StoredTensor.from_float32(values[:-1])], 1)
    whole = group_stats([StoredTensor.from_float32(values)], 1)
    low, _ = norms.norm_enclosure(whole, [norms.tree_error(values)])
    assert Fraction(stats.total_norm) ** 2 < low


@given(a=finite_values(1), b=finite_values(1))
def test_merge_is_commutative_bit_for_bit(a, b):
    one = [np.abs(v) if len(v) else np.zeros(1, np.float32) for v in (a, b)]
    ones = [np.where(v > 0, np.float32(1), np.float32(0)) for v in one]
    there, back = merge(one[0], ones[0], one[1], ones[1]), merge(one[1], ones[1], one[0], ones[0])
    assert all((bits_of(x) == bits_of(y)).all() for x, y in zip(there, back, strict=True))


@given(values=finite_values(300), sign=st.lists(st.booleans(), min_size=1, max_size=300))
def test_signs_and_appended_zeros_change_nothing(values, sign):
    flipped = np.where(np.resize(sign, len(values)), -values, values)
    longer = np.concatenate([flipped, np.zeros(7, np.float32)])
    a, b = (group_stats([StoredTensor.from_float32(v)], 1) for v in (values, longer))
    assert (a.total_norm, a.max_finite_abs) == (b.total_norm, b.max_finite_abs)


@given(values=finite_values(), power=st.integers(-20, 20))
def test_a_power_of_two_scales_out(values, power):
    kept = np.abs(values)
    normal = (kept > 2.0**-60) & (kept < 2.0**60)
    moved = values[normal] * np.float32(2.0**power)
    a, b = (group_stats([StoredTensor.from_float32(v)], 1) for v in (values[normal], moved))
    assert math.ldexp(a.total_norm, power) == b.total_norm


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_halves_and_the_same_values_as_f32_have_the_same_statistics(dtype):
    rng = np.random.default_rng(63)
    half = StoredTensor(dtype, (3000,), drawn.values(rng, dtype, 3000, "wide"))
    wide = StoredTensor.from_float32(half.values())
    assert summarize(half, 3) == summarize(wide, 3)
