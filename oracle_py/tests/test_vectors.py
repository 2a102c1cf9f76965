# SPDX-License-Identifier: Apache-2.0
"""The checked-in vectors: those of the exact model are what make_vectors.py makes, and all hold what they say."""

import hashlib
import itertools
import json

import numpy as np
import pytest
from vector_files import FOLDER, make_vectors

from gradguard_oracle import safetensors_file

FILES = [f"{source}_{dtype}.safetensors" for source in ("exact", "torch") for dtype in ("f32", "f16", "bf16")]
COMBINATIONS = {
    "-".join(words)
    for words in itertools.product(
        ("amsgrad", "adamw"), ("maximize", "minimize"), ("clipped", "unclipped"), ("first", "later")
    )
}


def test_exact_vectors_are_what_the_script_makes():
    assert make_vectors("--check", "--only", "exact") == (0, "")


def test_a_changed_vector_is_noticed(tmp_path):
    for path in FOLDER.glob("exact_*.safetensors"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    changed = tmp_path / "exact_f16.safetensors"
    content = bytearray(changed.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    status, output = make_vectors("--check", "--only", "exact", "--folder", tmp_path)
    assert (status, output) == (1, "exact_f16.safetensors is not what make_vectors.py makes\n")


def test_there_are_no_other_files():
    assert sorted(path.name for path in FOLDER.glob("*.safetensors")) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_every_combination_with_five_steps_and_its_hash(name):
    tensors, metadata = safetensors_file.read(FOLDER / name)
    cases = json.loads(metadata["cases"])
    assert COMBINATIONS <= set(cases)
    assert all(len(case["steps"]) >= 5 for case in cases.values())
    content = hashlib.sha256()
    for key in sorted(tensors, key=lambda text: text.encode()):
        tensor = tensors[key]
        content.update(key.encode() + b"\0" + tensor.dtype.encode() + b"\0")
        content.update(tensor.bits.astype(tensor.bits.dtype.newbyteorder("<")).tobytes())
    assert content.hexdigest() == metadata["sha256"]


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("torch")])
def test_pytorchs_results_lie_within_the_ends_beside_them(name):
    tensors, _ = safetensors_file.read(FOLDER / name)
    looked_at = 0
    for key, tensor in tensors.items():
        if tensor.dtype == "F32" and len(tensor.shape) == 2 and tensor.shape[0] == 3 and not key.endswith(".grad"):
            value, low, high = tensor.values().reshape(tensor.shape)
            assert (low <= value).all() and (value <= high).all(), key
            looked_at += np.size(value)
    assert looked_at > 10_000
