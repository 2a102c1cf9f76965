# SPDX-License-Identifier: Apache-2.0
"""Groups for the tests, and the same groups as the independent oracle takes them."""

import ml_dtypes
import numpy as np
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import Entry, guarded_step
from gradguard_oracle.update import Options, State

import gradguard

DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


def array(rng, shape, dtype="F32"):
    return rng.normal(size=shape).astype(DTYPES[dtype])


def state(rng, shape, step=3, amsgrad=False):
    def moment():
        return np.asarray(np.square(array(rng, shape)))

    return gradguard.AdamWState(step, array(rng, shape), moment(), moment() if amsgrad else None)


def entry(rng, shape, dtype="F32", step=None, amsgrad=False):
    return gradguard.AdamWEntry(
        array(rng, shape), array(rng, shape, dtype), None if step is None else state(rng, shape, step, amsgrad)
    )


def group(seed=0, amsgrad=False):
    """Every dtype, first and later steps, an empty entry, rank 0, and more than one block."""
    rng = np.random.default_rng(seed)
    return [
        entry(rng, (3, 40), "F32", 5, amsgrad),
        entry(rng, (7,), "F16"),
        entry(rng, (2, 0), "BF16"),
        entry(rng, (33, 65), "BF16", 2**40, amsgrad),
        entry(rng, (), "F16", 1, amsgrad),
    ]


def stored(gradients):
    """An array as the oracle takes it."""
    dtype = next(name for name, one in DTYPES.items() if gradients.dtype == one)
    bits = np.ascontiguousarray(gradients).reshape(-1).view(np.uint32 if dtype == "F32" else np.uint16)
    return StoredTensor(dtype, gradients.shape, bits)


def oracle_step(entries, options, control, guard):
    """(entries, report) of oracle_py for the same group."""
    converted = []
    for index, one in enumerate(entries):
        old = None
        if one.state is not None:
            maximum = one.state.max_second_moment
            old = State(
                one.state.step,
                one.state.first_moment.reshape(-1),
                one.state.second_moment.reshape(-1),
                None if maximum is None else maximum.reshape(-1),
            )
        converted.append(Entry(str(index), one.parameters.shape, one.parameters.reshape(-1), old))
    f32 = np.float32
    oracle_options = Options(
        learning_rate=f32(options.learning_rate),
        beta1=f32(options.beta1),
        beta2=f32(options.beta2),
        epsilon=f32(options.epsilon),
        weight_decay=f32(options.weight_decay),
        amsgrad=options.amsgrad,
        maximize=options.maximize,
        max_norm=None if guard.max_norm is None else f32(guard.max_norm),
        guard_epsilon=f32(guard.epsilon),
    )
    gradients = [stored(one.gradients) for one in entries]
    return guarded_step(converted, gradients, control.gradient_scale, oracle_options, control.skip_update)


def assert_same_entries(updates, expected):
    """Bit for bit, step counts included. updates: AdamWUpdate; expected: Entry of the oracle."""
    for got, want in zip(updates, expected, strict=True):
        assert same_bits(got.parameters, want.parameters)
        assert (got.state is None) == (want.state is None)
        if want.state is None:
            continue
        assert got.state.step == want.state.step
        assert same_bits(got.state.first_moment, want.state.first)
        assert same_bits(got.state.second_moment, want.state.second)
        assert (got.state.max_second_moment is None) == (want.state.maximum is None)
        if want.state.maximum is not None:
            assert same_bits(got.state.max_second_moment, want.state.maximum)


def same_bits(a, b):
    a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    return a.dtype == b.dtype == np.float32 and np.array_equal(a.view(np.uint32), b.view(np.uint32))
