# SPDX-License-Identifier: Apache-2.0
"""Programs nobody here wrote, on the virtual GPU by `gradguard run`."""

import pytest
from program_run import Runner


@pytest.fixture
def run(tmp_path):
    return Runner(tmp_path)
