# SPDX-License-Identifier: Apache-2.0
"""The oracle against values that were worked out elsewhere: the contract's examples and public bug reports."""

import hashlib
import json
import math
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from gradguard_oracle import safetensors_file
from gradguard_oracle.float32 import bits_of, float32_from_text, fma, nearest_float32, same_bits, widen
from gradguard_oracle.safetensors_file import FormatError, StoredTensor
from gradguard_oracle.statistics import group_stats, reciprocal, summarize
from gradguard_oracle.step import Entry, guarded_step, run_files
from gradguard_oracle.update import Options, State, clip_multiplier, coefficients, illegal_elements, maximum, update

RECORDED = Path(__file__).resolve().parents[2] / "property_tests" / "recorded"
DEFAULTS = Options()
FLT_MAX = np.float32(np.finfo(np.float32).max)


def f32(*values):
    return StoredTensor.from_float32(np.array(values, np.float32))


def options(**text):
    """Options with FP32 values straight from text; booleans and None as they are."""
    return Options(**{k: float32_from_text(v) if isinstance(v, str) else v for k, v in text.items()})


def entry(*parameters, state=None, name="a"):
    return Entry(name, (len(parameters),), np.array(parameters, np.float32), state)


def hex_bits(value):
    return f"0x{int(bits_of(np.array([value], np.float32))[0]):08X}"


def one_step(p, g, opts=DEFAULTS, state=None):
    entries, report = guarded_step([entry(p, state=state)], [f32(g)], 1, opts)
    return entries[0], report


# Update (sections 5 and 6)


def test_golden_first_step():
    result, report = one_step(1, 0.5)
    assert hex_bits(result.parameters[0]) == "0x3F7FBE75"
    assert hex_bits(result.state.first[0]) == "0x3D4CCCD0"
    assert hex_bits(result.state.second[0]) == "0x39831200"
    assert result.state.step == 1 and report.clip == 1


def test_golden_first_step_maximize():
    result, _ = one_step(1, 0.5, options(maximize=True))
    assert hex_bits(result.parameters[0]) == "0x3F8020C3"
    assert hex_bits(result.state.first[0]) == "0xBD4CCCD0"


def test_two_tensors_share_one_clip():
    entries, report = guarded_step([entry(1, name="a"), entry(1, name="b")], [f32(3), f32(4)], 1, Options())
    assert report.stats.total_norm == 5.0 and report.stats.exact_norm == 5.0
    assert hex_bits(report.clip) == "0x3E4CCCCA"
    assert report.update_launches == 2 and all(e.state.step == 1 for e in entries)


@pytest.mark.parametrize(
    "text, p, g, wanted",
    [
        (dict(learning_rate="0.1", weight_decay="0.1", epsilon="1e-8"), 1, 1, "0x3F63D70A"),  # decay before the update
        (dict(learning_rate="0.1", weight_decay="0.1"), 1, 0, "0x3F7D70A4"),  # decoupled, with the learning rate
        (dict(learning_rate="0"), 0.75, 3, "0x3F400000"),
        (dict(epsilon="1e-30", weight_decay="0"), 0.75, 0, "0x3F400000"),  # 0 / epsilon, never 0 / 0
    ],
)
def test_reported_updates(text, p, g, wanted):
    result, _ = one_step(p, g, options(**text))
    assert hex_bits(result.parameters[0]) == wanted


def test_learning_rate_zero_still_moves_moments():
    result, _ = one_step(0.75, 3, options(learning_rate="0", max_norm=None))
    assert (hex_bits(result.state.first[0]), hex_bits(result.state.second[0])) == ("0x3E99999C", "0x3C137440")


def test_huge_gradient_without_clipping_overflows_second_moment():
    result, _ = one_step(1, 1e20, options(max_norm=None))
    assert hex_bits(result.state.first[0]) == "0x5F0AC725" and np.isinf(result.state.second[0])
    assert hex_bits(result.parameters[0]) == "0x3F7FFFFE"
    clipped, report = one_step(1, 1e20)
    assert hex_bits(report.clip) == "0x1E3CE508"
    assert (hex_bits(clipped.parameters[0]), hex_bits(clipped.state.second[0])) == ("0x3F7FBE75", "0x3A831200")


def test_host_arithmetic_is_not_fused():
    c = coefficients(options(learning_rate="0.1", weight_decay="0.3"), 0, 1, 1)
    assert hex_bits(c.decay) == "0x3F7851EC"
    lost = coefficients(options(learning_rate="1e-4", weight_decay="1e-4"), 0, 1, 1)
    assert lost.decay == 1


@pytest.mark.parametrize(
    "t, beta2, wanted",
    [
        (1 << 24, 0x3F7FFFFF, "0x3FCA7E36"),
        (3 << 23, 0x3F7FFFFF, "0x3FA4C386"),
        (1 << 25, 0x3F7FFFFF, "0x3F9408C5"),
        (1 << 26, 0x3F7FFFFF, "0x3F82635D"),
        (256, 0x3F7FBE77, "0x408D9F11"),
        (257, 0x3F7FBE77, "0x408D234B"),
        ((1 << 64) - 1, 0x3F7FBE77, "0x3F800000"),
    ],
)
def test_bias_correction_at_large_steps(t, beta2, wanted):
    beta2 = widen(np.array([beta2], np.uint32), "F32")[0]
    assert hex_bits(coefficients(Options(beta2=beta2), t - 1, 1, 1).inverse_bias2) == wanted


def test_beta_zero_keeps_the_gradient():
    result, _ = one_step(1, 0.5, options(beta1="0", beta2="0"))
    assert result.state.first[0] == 0.5 and result.state.second[0] == 0.25


def test_amsgrad_maximum():
    nan = np.float32(np.nan)
    got = maximum(np.array([1, 2, nan, 1, -0.0], np.float32), np.array([2, 1, 1, nan, 0], np.float32))
    assert bits_of(got)[[0, 1, 4]].tolist() == [0x40000000, 0x40000000, 0] and np.isnan(got[2:4]).all()


@pytest.mark.parametrize("skip", ["requested", "nonfinite", "empty"])
def test_skips_leave_everything_alone(skip):
    entries = [entry(name="a") if skip == "empty" else entry(1, name="a")]
    gradients = [f32() if skip == "empty" else f32(np.nan if skip == "nonfinite" else 1)]
    after, report = guarded_step(entries, gradients, 1, Options(), skip_update=skip == "requested")
    assert after is entries and report.clip == 1 and report.update_launches == 0
    assert report.skip_reason == {"requested": "Requested", "nonfinite": "NonFinite", "empty": "Empty"}[skip]


def test_empty_entry_of_a_live_group_does_not_advance():
    empty = entry(name="b", state=State(7, np.zeros(0, np.float32), np.zeros(0, np.float32)))
    after, report = guarded_step([entry(1), empty], [f32(0.5), f32()], 1, Options())
    assert after[1].state.step == 7 and hex_bits(after[0].parameters[0]) == "0x3F7FBE75"
    assert (report.stats.tensors, report.stats.elements, report.stats.readback_bytes) == (2, 1, 12)


# The judge of contracted builds


def test_every_wrong_last_bit_is_illegal():
    rng = np.random.default_rng(5)
    p, g, m, v = (rng.normal(size=4096).astype(np.float32) for _ in range(4))
    state, opts = State(3, m, v * v), options(amsgrad=True, weight_decay="0.1")
    state = State(3, m, v * v, np.abs(v))
    c = coefficients(opts, 3, 1, 1)
    new_p, new = update(p, f32(*g), state, opts, c)
    legal = illegal_elements(p, f32(*g), state, opts, c, new_p, new)
    assert not any(flags.any() for flags in legal.values())

    def step(x, n):
        return (x.view(np.uint32) + np.uint32(n)).view(np.float32)

    # 2^12 units away is further than any contraction reaches where nothing cancels.
    wrong = State(new.step, step(new.first, 4096), step(new.second, 4096), step(new.maximum, 1))
    flags = illegal_elements(p, f32(*g), state, opts, c, step(new_p, 4096), wrong)
    assert flags["max_exp_avg_sq"].all() and flags["exp_avg_sq"].all()
    assert flags["exp_avg"].mean() > 0.99 and flags["param"].mean() > 0.99
    stuck = illegal_elements(p, f32(*g), state, opts, c, p, state)
    assert stuck["exp_avg"].mean() > 0.99 and stuck["param"].mean() > 0.99


def test_fused_and_unfused_differ_and_both_are_legal():
    opts, c = options(max_norm=None), coefficients(options(), 1, 1, 1)
    rng = np.random.default_rng(6)
    p, g, m, v = (rng.normal(size=4096).astype(np.float32) for _ in range(4))
    state = State(1, m, v * v)
    new_p, new = update(p, f32(*g), state, opts, c)
    fused = fma(opts.beta1, m, c.one_minus_beta1 * g)
    assert not same_bits(fused, new.first).all()
    flags = illegal_elements(p, f32(*g), state, opts, c, new_p, State(2, fused, new.second))
    assert not flags["exp_avg"].any() and flags["param"].any()  # p must follow from the m that was stored


# Decision (section 5)


@pytest.mark.parametrize(
    "values, max_norm, norm, clip",
    [
        ([10], "1", 10.0, "0x3DCCCCCB"),
        ([0, 0, 0, 0], "0", 0.0, "0x00000000"),
        ([0, 0, 0, 0], "-0", 0.0, "0x00000000"),
        ([0, 0, 0, 0], "1", 0.0, "0x3F800000"),
        ([1e19] * 128, "2", 1.1313708476930323e20, "0x1EA6F5FB"),
        ([1e20] * 100, "1", 1.0000000200408773e21, "0x1C971DA0"),
    ],
)
def test_clip(values, max_norm, norm, clip):
    stats = group_stats([f32(*values)], 1)
    assert stats.total_norm == norm
    assert hex_bits(clip_multiplier(stats.total_norm, options(max_norm=max_norm))) == clip


# Statistics (section 4)


def sumsq_error_bound(elements):
    """Closed form for the tree's relative error of sumsq over at most 1024 elements (harness/compare/BOUNDS.md)."""
    depth = -(-elements // 256) - 1 + min(8, (elements - 1).bit_length())
    k = 5 * depth + 4
    return k * 2.0**-24 / (1 - k * 2.0**-24)


@pytest.mark.parametrize(
    "dtype, values, norm",
    [
        ("F16", [300], 300.0),
        ("F16", [600, 800], 1000.0),
        ("F16", [200] * 3, 346.41016151377545),
        ("F16", [65504] * 4, 131008.0),
        ("F32", [1e20, 1, 1], 1.0000000200408773e20),
        ("F32", [2e20], 2.0000000400817547e20),
        ("F32", [2e-28], 2.0000000063421537e-28),
        ("F32", [1e-23, 0], 9.999999998199587e-24),
        ("F32", [5 * 2.0**-149], 7.006492321624085e-45),
        ("F32", [2.0**-149] * 128, 1.5853882345445977e-44),
        ("F32", [2.0**-148, 2.0**-149], 3.133398622996355e-45),
        ("F32", [0, 0, 0], 0.0),
        ("F32", [-0.0, 1], 1.0),
    ],
)
def test_reported_norms(dtype, values, norm):
    bits = np.array(values, np.float16).view(np.uint16) if dtype == "F16" else bits_of(np.array(values, np.float32))
    stats = group_stats([StoredTensor(dtype, (len(values),), bits)], 1)
    assert stats.all_finite and abs(stats.total_norm - norm) <= norm * sumsq_error_bound(len(values)) / 2
    assert stats.exact_norm == norm


def test_large_sums_of_ones_are_exact():
    stats = group_stats([StoredTensor.from_float32(np.ones(1 << 24, np.float32))], 1)
    assert stats.total_norm == stats.exact_norm == 4096.0


@pytest.mark.parametrize("values", [[1e30, -1e30], [1e-30, -1e-30], [3e38, 3e38], [2.0**-149, 2.0**-140]])
def test_extreme_values_neither_overflow_nor_vanish(values):
    stats = group_stats([f32(*values)], 1)
    exact = sum(Fraction(float(np.float32(v))) ** 2 for v in values)
    assert 0 < stats.total_norm < math.inf
    assert abs(Fraction(stats.exact_norm) ** 2 - exact) <= exact * Fraction(3, 2**53)


@pytest.mark.parametrize("position", [0, 255, 256, 1023, 1024])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_value_is_flagged_wherever_it_is(position, bad):
    values = np.arange(1025, dtype=np.float32)
    values[position] = bad
    stats = group_stats([f32(1, 2), StoredTensor.from_float32(values)], 1)
    assert not stats.all_finite and stats.total_norm == stats.exact_norm == math.inf
    assert [s.first_bad for s in stats.summaries] == [None, position]
    assert stats.max_finite_abs == (1023 if position == 1024 else 1024) and stats.elements == 1027


@pytest.mark.parametrize(
    "value, dtype, scale, finite",
    [(3e38, "F32", 0.5, False), (65504, "F16", 2.0**-113, False), (65504, "F16", 2.0**-112, True)],
)
def test_unscaling_overflow_is_bad(value, dtype, scale, finite):
    bits = np.array([value], np.float16).view(np.uint16) if dtype == "F16" else bits_of(np.array([value], np.float32))
    stats = group_stats([StoredTensor(dtype, (1,), bits)], scale)
    assert stats.all_finite == finite
    if finite:
        assert stats.total_norm == 3.4011621342146535e38


def test_unscaling_multiplies_by_the_reciprocal():
    assert hex_bits(group_stats([f32(5)], 3).max_finite_abs) == "0x3FD55556"
    assert hex_bits(group_stats([f32(9)], 10).max_finite_abs) == "0x3F666667"
    scales = [2.0**-127, 2.0**126, 2.0**127, FLT_MAX]
    assert [hex_bits(reciprocal(s)) for s in scales] == ["0x7F000000", "0x00800000", "0x00400000", "0x00200000"]


@pytest.mark.parametrize(
    "n, launches, scratch",
    [(1, 1, 12), (1024, 1, 12), (1025, 2, 36), (65537, 2, 12 * 65 + 12), (1048577, 2, 12 * 1024 + 12)],
)
def test_accounting(n, launches, scratch):
    values = np.zeros(n, np.float32)
    for position in {0, n // 2, n - 1}:
        values[:], values[position] = 0, 3
        summary = summarize(StoredTensor.from_float32(values), 1)
        assert (summary.launches, summary.scratch_bytes) == (launches, scratch)
        assert float(summary.scale) == 3 and float(summary.sumsq) == 1


def test_pair_follows_the_contract_tree_on_a_small_tensor():
    # Lanes 0..2 of one block hold 1, 2, 3. Offset 2: lane 0 merges lane 2; offset 1: lane 0 merges lane 1.
    q = np.float32(1) / np.float32(3)
    first = np.float32(1) + np.float32(1) * (q * q)
    q = np.float32(2) / np.float32(3)
    summary = summarize(f32(1, 2, 3), 1)
    assert float(summary.scale) == 3 and summary.sumsq == first + np.float32(1) * (q * q)


def test_powers_of_two_scale_out():
    values = np.random.default_rng(7).normal(size=70000).astype(np.float32)
    a = summarize(StoredTensor.from_float32(values), 1)
    b = summarize(StoredTensor.from_float32(values * np.float32(2.0**20)), 1)
    c = summarize(StoredTensor.from_float32(values * np.float32(2.0**20)), 2.0**20)
    assert float(b.scale) == float(a.scale) * 2**20 and a.sumsq == b.sumsq == c.sumsq and a.scale == c.scale


# FP32 tools


def _patterns(count, seed):
    rng = np.random.default_rng(seed)
    special = np.array([0, 0x80000000, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000], np.uint32)
    return np.concatenate([np.resize(special, count // 4), rng.integers(0, 1 << 32, count, dtype=np.uint32)])


def test_fma_rounds_once():
    rng = np.random.default_rng(8)
    a, b, c = (widen(rng.permutation(_patterns(6000, seed)), "F32") for seed in (1, 2, 3))
    near = rng.permutation(len(a))[:4000]
    with np.errstate(all="ignore"):
        c[near] = -(a * b)[near]  # cancellation leaves only what the product's rounding would have lost
        got = fma(a, b, c)
    checked = 0
    for x, y, z, result in zip(a, b, c, got, strict=True):
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert float(nearest_float32(exact)) == float(result)
        checked += 1
    assert checked > 3000


def test_text_goes_straight_to_float32():
    assert hex_bits(float32_from_text("0.1")) == "0x3DCCCCCD"
    assert hex_bits(float32_from_text("1e300")) == "0x7F800000"
    # Just above the middle of 1 and its successor: FP64 rounds it to the middle, then to 1.
    assert hex_bits(float32_from_text("1.00000005960464477539062500001")) == "0x3F800001"
    assert hex_bits(float32_from_text("0x1.0000010000000000001p0")) == "0x3F800001"
    assert hex_bits(float32_from_text("0x1p-149")) == "0x00000001"
    assert hex_bits(float32_from_text("-0")) == "0x80000000"
    assert hex_bits(float32_from_text("0x1.fffffep127")) == "0x7F7FFFFF"


def test_all_half_patterns_widen_exactly():
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves, brains = widen(bits, "F16"), widen(bits, "BF16")
    assert halves[1] == 2.0**-24 and halves[0x7BFF] == 65504 and halves[0xFC00] == -np.inf
    assert brains[1] == 2.0**-133 and brains[0x3F80] == 1 and np.isnan(brains[0x7FC0])


# Files


def test_files_round_trip(tmp_path):
    tensors = {"a.grad": StoredTensor("BF16", (2, 1), np.array([1, 2], np.uint16)), "b.param": f32(1, 2, 3)}
    safetensors_file.write(tmp_path / "x.safetensors", tensors, {"step": "3"})
    again, metadata = safetensors_file.read(tmp_path / "x.safetensors")
    assert metadata == {"step": "3"} and again["a.grad"].shape == (2, 1) and again["b.param"].bits.dtype == np.uint32
    assert all((again[n].bits == tensors[n].bits).all() for n in tensors)


@pytest.mark.parametrize(
    "header, size",
    [
        ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', 4),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 8),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', 4),
        ('{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', 8),
        (
            '{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}',
            0,
        ),
    ],
)
def test_irregular_files_are_refused(tmp_path, header, size):
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(size))
    with pytest.raises(FormatError):
        safetensors_file.read(path)


@pytest.mark.parametrize("run", ["bf16_transformer", "f16_loss_scaling", "f32_digits"])
def test_recorded_files_are_what_the_provenance_says(run):
    facts = json.loads((RECORDED / "PROVENANCE.json").read_text())["runs"][run]
    paths = [RECORDED / step["file"] for step in facts["steps"]]
    for path, step in zip(paths, facts["steps"], strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == step["sha256"]
    history = run_files(paths, Options())
    reports = [report for _, report in history]
    assert [r.skip_reason for r in reports] == [step["skip_reason"] for step in facts["steps"]]
    assert [str(r.stats.total_norm) for r in reports] == [step["total_norm"] for step in facts["steps"]]
    after = b"".join(e.parameters.astype("<f4").tobytes() for e in history[-1][0])
    assert hashlib.sha256(after).hexdigest() == facts["sha256_of_parameters_after_last_step"]


def test_recorded_data_stays_small():
    assert sum(path.stat().st_size for path in RECORDED.rglob("*.safetensors")) <= 3_000_000
