# SPDX-License-Identifier: Apache-2.0
"""Arrays are used where they lie: no copy going in or coming out, no leak, observers attached."""

import gc

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")

from groups import array, entry, group, same_bits  # noqa: E402


class Dlpack:
    """Gives an array away by DLPack and nothing else."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **arguments):
        return self.values.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device


def test_a_huge_group_is_not_copied():
    """Address space for 64 MiB of parameters and gradients is there once; a copy would need it again."""
    import resource

    one = np.ones(1 << 24, np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradguard.gradient_stats([one])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < one.nbytes // 2


def test_what_is_written_to_an_array_is_seen_by_the_next_call():
    values = np.zeros(10, np.float32)
    assert gradguard.gradient_stats([values]).total_norm == 0.0
    values[3] = 2.0
    assert gradguard.gradient_stats([values]).total_norm == 2.0


def test_a_result_is_the_devices_memory():
    device = gradguard.Device()
    update = gradguard.guarded_adamw_step([entry(np.random.default_rng(0), (3, 5))], device=device).entries[0]
    arrays = [update.parameters, update.state.first_moment, update.state.second_moment]
    assert device.live_allocations == 3
    for one in arrays:
        assert not one.flags.owndata and one.flags.writeable and one.flags.c_contiguous
        assert one.shape == (3, 5) and one.dtype == np.float32
        assert one.ctypes.data % 256 == 0
    assert not any(np.shares_memory(one, two) for one in arrays for two in arrays if one is not two)
    assert np.shares_memory(update.parameters, update.parameters.reshape(-1))


def test_a_result_outlives_its_device():
    update = gradguard.guarded_adamw_step([entry(np.random.default_rng(1), (6,))], device=gradguard.Device()).entries[0]
    copy = update.parameters.copy()
    gc.collect()
    assert same_bits(update.parameters, copy)


def test_memory_goes_back_with_the_arrays():
    device = gradguard.Device(observers="all")
    update = gradguard.guarded_adamw_step(group(2), device=device)
    kept = update.entries[0].state.first_moment
    assert device.live_allocations == 12
    del update
    assert device.live_allocations == 1
    assert len(device.findings(final=True)) == 1
    del kept
    assert device.live_allocations == 0
    assert device.findings(final=True) == []


def test_inputs_are_only_read():
    entries = group(3, amsgrad=True)
    arrays = [
        part
        for one in entries
        for part in [one.parameters, one.gradients]
        + ([] if one.state is None else [one.state.first_moment, one.state.second_moment, one.state.max_second_moment])
    ]
    for part in arrays:
        part.flags.writeable = False
    before = [part.tobytes() for part in arrays]
    device = gradguard.Device(observers="all")
    gradguard.guarded_adamw_step(entries, gradguard.AdamWOptions(amsgrad=True), device=device)
    assert [part.tobytes() for part in arrays] == before
    assert device.findings() == []


def test_operands_may_alias_each_other():
    values = array(np.random.default_rng(4), (8,))
    update = gradguard.guarded_adamw_step([gradguard.AdamWEntry(values, values)] * 2)
    assert same_bits(update.entries[0].parameters, update.entries[1].parameters)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_dlpack_gives_what_numpy_gives(dtype):
    values = np.random.default_rng(5).normal(size=(4, 7)).astype(dtype)
    assert gradguard.gradient_stats([Dlpack(values)]).total_norm == gradguard.gradient_stats([values]).total_norm
    assert gradguard.reference.exact_norm([Dlpack(values)]) == gradguard.reference.exact_norm([values])


def test_a_result_speaks_dlpack_without_a_copy():
    update = gradguard.adamw_step(np.ones(3, np.float32), np.ones(3, np.float32))
    assert np.shares_memory(np.from_dlpack(update.parameters), update.parameters)


def test_memory_of_another_device_is_refused():
    with pytest.raises(gradguard.InvalidTensor, match="host can read"):
        gradguard.gradient_stats([Dlpack(np.ones(3, np.float32), device=(2, 0))])


@pytest.mark.parametrize(
    "make",
    [
        lambda values: values[:, ::2],
        lambda values: values.T,
        lambda values: values[::-1],
        lambda values: np.broadcast_to(values[0], (4, 6)),
    ],
    ids=["every other column", "transposed", "reversed", "broadcast"],
)
def test_no_copy_is_made_of_an_array_that_is_not_dense(make):
    values = make(np.ones((4, 6), np.float32))
    with pytest.raises(gradguard.InvalidTensor, match="dense contiguous"):
        gradguard.gradient_stats([values])
    with pytest.raises(gradguard.InvalidTensor, match="dense"):
        gradguard.reference.exact_norm([values])


def test_the_stride_of_a_dimension_of_size_one_is_irrelevant():
    values = np.lib.stride_tricks.as_strided(np.ones(4, np.float32), (1, 4), (4096, 4))
    assert gradguard.gradient_stats([values]).total_norm == 2.0


def test_a_slice_of_whole_rows_is_dense():
    values = np.ones((8, 4), np.float32)
    assert gradguard.gradient_stats([values[2:6]]).total_norm == 4.0


def test_an_array_that_is_not_aligned_is_refused():
    values = np.frombuffer(bytes(17), np.uint8)[1:].view(np.float32)
    with pytest.raises(gradguard.InvalidTensor, match="byte offset"):
        gradguard.gradient_stats([values])


def test_a_device_is_renewed_before_its_addresses_run_out():
    device = gradguard.Device(observers="all")
    values = [np.ones(1, np.float32)] * 64
    first = gradguard.adamw_step(values[0], values[0], device=device)
    for _ in range(600):
        gradguard.gradient_stats(values, device=device)
    second = gradguard.adamw_step(values[0], values[0], device=device)
    assert same_bits(first.parameters, second.parameters)
    assert device.findings() == []
