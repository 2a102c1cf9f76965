# SPDX-License-Identifier: Apache-2.0
"""Parts of tools/mutate: see engine.py for the terms and the contract between engine and targets."""
