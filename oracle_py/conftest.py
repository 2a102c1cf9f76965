# SPDX-License-Identifier: Apache-2.0
"""Puts this folder on the import path, so that the tests import gradguard_oracle from the checkout."""
