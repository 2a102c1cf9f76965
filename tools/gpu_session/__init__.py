# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/gpu_session.sh: options, stages, their execution, the record, the package for another machine."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
