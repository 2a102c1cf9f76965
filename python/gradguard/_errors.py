# SPDX-License-Identifier: Apache-2.0
"""The contract's errors (contract section 3) as Python exceptions: one class for each kind."""


class Error(Exception):
    """An error of the library or of the oracle.

    Attributes:
        kind: the contract's name of the kind, which is the class's name.
        entry: index of the offending entry in input order, or None.
        operand: public name of what offends: "learning_rate", "parameters", "gradients", "step", ...
        message: what was wanted and what came.
    """

    kind = ""

    def __init__(self, message="", *, entry=None, operand=""):
        super().__init__(message)
        self.message = message
        self.entry = entry
        self.operand = operand

    def __str__(self):
        text = self.kind
        if self.entry is not None:
            text += f": entry {self.entry}"
        if self.operand:
            text += f"{': ' if self.entry is None else ' '}{self.operand}"
        return f"{text}: {self.message}" if text else self.message


class InvalidOption(Error, ValueError):
    """An option outside its range."""

    kind = "InvalidOption"


class InvalidTensor(Error, ValueError):
    """An array of the wrong dtype, layout, size or place."""

    kind = "InvalidTensor"


class ShapeMismatch(Error, ValueError):
    """Gradients or moments of another shape than the parameters."""

    kind = "ShapeMismatch"


class DifferentExecutionQueue(Error):
    """Operands of one group on different devices or queues."""

    kind = "DifferentExecutionQueue"


class InvalidState(Error, ValueError):
    """A state without completed steps, or whose maximum does not fit AMSGrad."""

    kind = "InvalidState"


class StepOverflow(Error, OverflowError):
    """The step count would leave 64 bits."""

    kind = "StepOverflow"


class UnsupportedDevice(Error):
    """A device that is not here or cannot run the kernels."""

    kind = "UnsupportedDevice"


class InvalidSummary(Error):
    """A summary that no reduction can give, or totals that overflow."""

    kind = "InvalidSummary"


class Readback(Error):
    """Summaries could not be read back."""

    kind = "Readback"


class DeviceFailure(Error, RuntimeError):
    """A device call failed; `operand` names it. Device.reset() starts anew."""

    kind = "DeviceFailure"


class NonFiniteGradients(Error, ArithmeticError):
    """The group holds a NaN or an infinity, and the guard's policy is Error."""

    kind = "NonFiniteGradients"


KINDS = (
    InvalidOption,
    InvalidTensor,
    ShapeMismatch,
    DifferentExecutionQueue,
    InvalidState,
    StepOverflow,
    UnsupportedDevice,
    InvalidSummary,
    Readback,
    DeviceFailure,
    NonFiniteGradients,
)
