# SPDX-License-Identifier: Apache-2.0
"""The oracle: what is exactly true, what the contract's own arithmetic gives, and what a right result may be.

Pure functions on the host; none of them shares arithmetic with the kernels.
"""

from ._core.reference import (
    UpdateCoefficients,
    adamw_step,
    coefficients,
    enclosure,
    exact_norm,
    exact_sum_of_squares,
    exact_update,
    gradient_stats,
    guarded_adamw_step,
    hull,
    legal_set,
    norm_bound,
    tree_summary,
    ulp_error,
    ulp_of,
)

__all__ = [
    "UpdateCoefficients",
    "adamw_step",
    "coefficients",
    "enclosure",
    "exact_norm",
    "exact_sum_of_squares",
    "exact_update",
    "gradient_stats",
    "guarded_adamw_step",
    "hull",
    "legal_set",
    "norm_bound",
    "tree_summary",
    "ulp_error",
    "ulp_of",
]
