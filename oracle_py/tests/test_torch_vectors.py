# SPDX-License-Identifier: Apache-2.0
"""PyTorch's vectors are what make_vectors.py makes with the version that it names."""

import pytest
from vector_files import make_vectors

from gradguard_oracle import pytorch

if pytorch.why_not():
    pytest.skip(f"blocked: {pytorch.why_not()}", allow_module_level=True)


def test_pytorchs_vectors_are_what_the_script_makes():
    status, output = make_vectors("--check", "--only", "torch")
    if status == 2:
        pytest.skip(output.strip())
    assert (status, output) == (0, "")
