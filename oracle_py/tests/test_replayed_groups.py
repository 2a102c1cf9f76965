# SPDX-License-Identifier: Apache-2.0
"""10,000 drawn groups: the NumPy model and the compiled kernels on the virtual GPU agree bit for bit."""

from collections import Counter

import drawn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import problem_with_contraction, problem_without_contraction

from gradguard_oracle.float32 import BITS_TYPE
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import Entry
from gradguard_oracle.update import Options, State

BATCHES, IN_A_BATCH = 20, 500
WITH_CONTRACTION = 4  # of the batches
SEED = 20260


def batch(number):
    rng = np.random.default_rng([SEED, number])
    groups, classes = [], Counter()
    for _ in range(IN_A_BATCH):
        group, of_group = drawn.group(rng)
        groups.append(group)
        classes.update(of_group)
    return groups, classes


def first_problem(groups, results, problem_of):
    for index, (group, result) in enumerate(zip(groups, results, strict=True)):
        problem = problem_of(group, result)
        if problem:
            return f"group {index}: {problem}"
    return None


@pytest.mark.parametrize("number", range(BATCHES))
def test_model_and_kernels_without_contraction_agree_bit_for_bit(replay, number):
    groups, _ = batch(number)
    assert first_problem(groups, replay(groups), problem_without_contraction) is None


@pytest.mark.parametrize("number", range(WITH_CONTRACTION))
def test_kernels_with_contraction_have_the_same_statistics_and_a_legal_update(replay, number):
    groups, _ = batch(number)
    assert first_problem(groups, replay(groups, contracted=True), problem_with_contraction) is None


def test_every_class_is_drawn_often():
    total = Counter()
    for number in range(WITH_CONTRACTION):
        total += batch(number)[1]
    wanted = {
        "F32",
        "F16",
        "BF16",
        *drawn.FILLS,
        "small",
        "straddling",
        "two stages",
        "first step",
        "later step",
        "amsgrad",
        "maximize",
    }
    assert {name for name in wanted if total[name] < 50} == set()


def test_every_outcome_is_reached(replay):
    groups, _ = batch(0)
    facts = [result.facts for result in replay(groups)]
    assert {f["skip_reason"] for f in facts} == {None, "NonFinite", "Empty"}
    clips = Counter({"0x3F800000": "one", "0x00000000": "zero"}.get(f["clip_multiplier"], "between") for f in facts)
    assert min(clips[name] for name in ("one", "zero", "between")) >= 20


def patterns(dtype, finite):
    """Bit patterns: the format's edges first, so that shrinking ends at them, then any."""
    bits = 8 * np.dtype(BITS_TYPE[dtype]).itemsize
    exponent_bits, mantissa_bits = drawn.EXPONENTS[dtype]
    special = ((1 << exponent_bits) - 1) << mantissa_bits
    any_pattern = st.integers(0, (1 << bits) - 1).filter(lambda p: not finite or p & special != special)
    return st.one_of(st.sampled_from([int(p) for p in drawn.edges(dtype)]), any_pattern)


@st.composite
def stored(draw, dtype, count, finite):
    bits = draw(st.lists(patterns(dtype, finite), min_size=count, max_size=count))
    return StoredTensor(dtype, (count,), np.array(bits, BITS_TYPE[dtype]))


def from_pattern(bits):
    return np.array([bits], np.uint32).view(np.float32)[0]


@st.composite
def drawn_groups(draw):
    def number(low, high):
        return draw(st.floats(low, high, width=32).map(np.float32))

    options = Options(
        learning_rate=number(0, 1),
        beta1=number(0, 1 - 2.0**-24),
        beta2=number(0, 1 - 2.0**-24),
        epsilon=number(2.0**-149, 1),
        weight_decay=number(0, 1),
        amsgrad=draw(st.booleans()),
        maximize=draw(st.booleans()),
        max_norm=draw(st.none() | st.floats(0, float(from_pattern(0x7F7FFFFF)), width=32).map(np.float32)),
        guard_epsilon=number(2.0**-149, 1),
    )
    entries, gradients = [], []
    finite = draw(st.booleans())
    for index in range(draw(st.integers(1, 3))):
        count = draw(st.integers(0, 6))
        gradients.append(draw(stored(draw(st.sampled_from(["F32", "F16", "BF16"])), count, finite)))
        operands = [draw(stored("F32", count, False)).values() for _ in range(4)]
        state = None
        if draw(st.booleans()):
            step = draw(st.integers(1, 2**64 - 2))
            state = State(step, operands[1], operands[2], operands[3] if options.amsgrad else None)
        entries.append(Entry(f"e{index}", (count,), operands[0], state))
    return drawn.Group(entries, gradients, number(2.0**-126, float(from_pattern(0x7F7FFFFF))), options)


@settings(max_examples=300)
@given(group=drawn_groups())
def test_model_and_kernels_agree_on_groups_that_shrink(replay, group):
    for contracted, problem_of in ((False, problem_without_contraction), (True, problem_with_contraction)):
        (result,) = replay([group], contracted)
        assert problem_of(group, result) is None


def test_a_wrong_bit_is_noticed(replay):
    """The comparison itself: one flipped bit of the last group's parameters."""
    groups, _ = batch(0)
    results = replay(groups)
    updated = [i for i, r in enumerate(results) if any(e["updated"] for e in r.facts["entries"])]
    changed = results[updated[-1]].entries[[e["updated"] for e in results[updated[-1]].facts["entries"]].index(True)]
    changed.parameters.view(np.uint32)[-1] ^= 1
    assert first_problem(groups, results, problem_without_contraction).startswith(f"group {updated[-1]}: ")
