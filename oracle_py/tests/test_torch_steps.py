# SPDX-License-Identifier: Apache-2.0
"""The real clip_grad_norm_ and AdamW on the CPU against the oracle, key by key, over several steps (numerics:
"PyTorch on the CPU as a second opinion")."""

import dataclasses

import numpy as np
import pytest
import random_groups as groups
from hypothesis import given, settings
from hypothesis import strategies as st

from gradguard_oracle import comparison, enclosure, pytorch
from gradguard_oracle.comparison import compare_steps, total
from gradguard_oracle.update import Options

if pytorch.why_not():
    pytest.skip(f"blocked: {pytorch.why_not()}", allow_module_level=True)

VARIANTS = pytorch.available_variants()
STEPS = 5
SHAPES = [(37,), (3, 100), (1500,), ()]
F32 = np.float32
# Epsilon near |g|, weight decay not 0 (numerics, "Inputs"): after the first step p hardly depends on |g| otherwise.
STRONG = Options(learning_rate=F32(0.25), epsilon=F32(0.25), weight_decay=F32(0.1), beta1=F32(0.8), beta2=F32(0.95))


def scenario(seed, dtype, options, later, size=1.0, shapes=SHAPES):
    """(entries, gradients of five steps, their loss scales)."""
    rng = np.random.default_rng(seed)
    entries = [groups.parameters(rng, f"e{i}", s, 7 if later else None, options.amsgrad) for i, s in enumerate(shapes)]
    scales = [F32(s) for s in (8, 8, 3, 16, 1)]
    gradients = [[groups.ordinary(rng, dtype, shape, size * float(scale)) for shape in shapes] for scale in scales]
    return entries, gradients, scales


def outside(differences):
    return [problem for difference in differences.values() for problem in difference.outside]


def check(differences, options):
    wanted = {"exp_avg", "exp_avg_sq", "param"} | ({"max_exp_avg_sq"} if options.amsgrad else set())
    wanted |= {"total_norm", "gradient"} if options.max_norm is not None else set()
    assert set(differences) == wanted
    assert outside(differences) == []
    assert all(difference.fraction <= 1 for difference in differences.values())


def test_every_variant_of_this_version_is_compared():
    assert VARIANTS == list(pytorch.VARIANTS)


@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("max_norm", [None, 0.5, 1e6], ids=["unclipped", "clipped", "within"])
@pytest.mark.parametrize("maximize", [False, True], ids=["minimize", "maximize"])
@pytest.mark.parametrize("amsgrad", [False, True], ids=["adamw", "amsgrad"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_pytorch_agrees_within_the_enclosures(variant, amsgrad, maximize, max_norm, later):
    norm = None if max_norm is None else F32(max_norm)
    half = "F16" if amsgrad == maximize else "BF16"
    for seed, (dtype, options) in enumerate([("F32", STRONG), (half, Options() if later else STRONG)]):
        options = dataclasses.replace(options, amsgrad=amsgrad, maximize=maximize, max_norm=norm)
        check(total(compare_steps(*scenario(seed, dtype, options, later), options, variant)), options)


def fp32_between(low, high):
    return st.floats(low, high, width=32).map(np.float32)


@st.composite
def chosen_options(draw):
    return Options(
        learning_rate=draw(st.one_of(st.just(F32(0)), fp32_between(2.0**-20, 1.0))),
        beta1=draw(st.one_of(st.sampled_from([F32(0), F32(0.5)]), fp32_between(2.0**-10, 1 - 2.0**-10))),
        beta2=draw(st.one_of(st.just(F32(0)), fp32_between(2.0**-10, 1 - 2.0**-10))),
        epsilon=draw(fp32_between(2.0**-30, 1.0)),
        weight_decay=draw(st.one_of(st.just(F32(0)), fp32_between(2.0**-10, 1.0))),
        amsgrad=draw(st.booleans()),
        maximize=draw(st.booleans()),
        max_norm=draw(st.one_of(st.none(), fp32_between(2.0**-10, 2.0**10))),
    )


@settings(max_examples=60)
@given(
    options=chosen_options(),
    variant=st.sampled_from(VARIANTS),
    dtype=st.sampled_from(["F32", "F16", "BF16"]),
    later=st.booleans(),
    exponent=st.integers(-12, 8),
    size=st.integers(1, 70),
    seed=st.integers(0, 2**32 - 1),
)
def test_pytorch_agrees_for_drawn_options(options, variant, dtype, later, exponent, size, seed):
    given_steps = scenario(seed, dtype, options, later, 2.0**exponent, [(size,), (3,)])
    check(total(compare_steps(*given_steps, options, variant)), options)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_unscaling_there_has_the_same_bits(dtype):
    """Every half pattern, and as many of F32: float32(stored) times the reciprocal."""
    import torch

    from gradguard_oracle.float32 import BITS_TYPE, same_bits, widen
    from gradguard_oracle.statistics import reciprocal

    bits = np.arange(1 << 16, dtype=np.uint32)
    bits = (bits * np.uint32(65537)).astype(BITS_TYPE[dtype]) if dtype == "F32" else bits.astype(np.uint16)
    stored_type = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[dtype]
    signed = bits.view(np.int32 if dtype == "F32" else np.int16)
    theirs = torch.from_numpy(signed.copy()).view(stored_type).to(torch.float32)
    for scale in (1, 3, 65536):
        r = reciprocal(scale)
        with np.errstate(all="ignore"):
            ours = widen(bits, dtype) * r
        assert same_bits((theirs * float(r)).numpy(), ours).all()


WRONG_FORMULAS = {
    "decay_after_the_update": lambda i, m, x, o, c: (
        (enclosure.Interval.of(i.parameters) - _move(m, x, o, c) * o.learning_rate) * c.decay
    ),
    "epsilon_inside_the_root": lambda i, m, x, o, c: (
        enclosure.Interval.of(i.parameters) * c.decay
        - (enclosure.Interval.of(m) * c.inverse_bias1)
        / (enclosure.Interval.of(x) * c.inverse_bias2 + o.epsilon).sqrt()
        * o.learning_rate
    ),
    "no_bias_correction_of_v": lambda i, m, x, o, c: (
        enclosure.Interval.of(i.parameters) * c.decay
        - (enclosure.Interval.of(m) * c.inverse_bias1) / (enclosure.Interval.of(x).sqrt() + o.epsilon) * o.learning_rate
    ),
}


def _move(m, x, o, c):
    below = (enclosure.Interval.of(x) * c.inverse_bias2).sqrt() + o.epsilon
    return (enclosure.Interval.of(m) * c.inverse_bias1) / below


@pytest.mark.parametrize("fault", WRONG_FORMULAS)
def test_a_wrong_formula_does_not_overlap_with_pytorchs(monkeypatch, fault):
    monkeypatch.setattr(comparison, "contract_parameters", WRONG_FORMULAS[fault])
    found = total(compare_steps(*scenario(1, "F32", STRONG, True), STRONG, "plain"))["param"]
    assert any("the formulas differ" in problem for problem in found.outside)


@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_sq", "param"])
def test_a_wrong_result_lies_outside(monkeypatch, key):
    """32 units in the last place of the largest element: far less than a wrong hyper-parameter makes."""
    step = pytorch.step

    def wrong(entries, *rest):
        made = step(entries, *rest)
        after = made.entries[0]
        values = {"exp_avg": after.state.first, "exp_avg_sq": after.state.second, "param": after.parameters}[key]
        values.view(np.uint32)[np.argmax(np.abs(values))] += 32
        return made

    monkeypatch.setattr(pytorch, "step", wrong)
    found = total(compare_steps(*scenario(2, "F32", STRONG, True), STRONG, "plain"))
    assert found[key].outside
