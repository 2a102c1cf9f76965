# SPDX-License-Identifier: Apache-2.0
"""Guarded AdamW on a virtual GPU, and the bench that shows whether an optimizer is right.

The operations of the numerical contract run the project's compiled kernels on NumPy arrays and on anything that speaks
DLPack, without copying:

    gradient_stats, decide, adamw_step, guarded_adamw_step, clipped_adamw_step      the library
    reference                                                                       the oracle, and what is legal
    check                                                                           holds any callable against both

Gradients are float32, float16 or bfloat16 (of ml_dtypes or a DLPack producer); parameters and moments are float32.
Errors are the classes of the contract's kinds, all of them `Error`.
"""

from . import reference
from ._check import CheckResult, PropertyResult, check, properties, subjects
from ._core import (
    Abilities,
    AdamWEntry,
    AdamWOptions,
    AdamWState,
    AdamWUpdate,
    Case,
    Contraction,
    Device,
    GradientDecision,
    GradientGuardOptions,
    GradientStats,
    GradientStatsReport,
    GradientSummary,
    GuardedAdamWUpdate,
    NonFinitePolicy,
    NormKind,
    SkipReason,
    StepControl,
    adamw_step,
    clipped_adamw_step,
    decide,
    gradient_stats,
    guarded_adamw_step,
)
from ._errors import (
    DeviceFailure,
    DifferentExecutionQueue,
    Error,
    InvalidOption,
    InvalidState,
    InvalidSummary,
    InvalidTensor,
    NonFiniteGradients,
    Readback,
    ShapeMismatch,
    StepOverflow,
    UnsupportedDevice,
)

__all__ = [
    "Abilities",
    "AdamWEntry",
    "AdamWOptions",
    "AdamWState",
    "AdamWUpdate",
    "Case",
    "CheckResult",
    "Contraction",
    "Device",
    "DeviceFailure",
    "DifferentExecutionQueue",
    "Error",
    "GradientDecision",
    "GradientGuardOptions",
    "GradientStats",
    "GradientStatsReport",
    "GradientSummary",
    "GuardedAdamWUpdate",
    "InvalidOption",
    "InvalidState",
    "InvalidSummary",
    "InvalidTensor",
    "NonFiniteGradients",
    "NonFinitePolicy",
    "NormKind",
    "PropertyResult",
    "Readback",
    "ShapeMismatch",
    "SkipReason",
    "StepControl",
    "StepOverflow",
    "UnsupportedDevice",
    "adamw_step",
    "check",
    "clipped_adamw_step",
    "decide",
    "gradient_stats",
    "guarded_adamw_step",
    "properties",
    "reference",
    "subjects",
]
