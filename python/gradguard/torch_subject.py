# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own pair, clip_grad_norm_ and AdamW, as a subject of gradguard.check. Needs PyTorch."""

import numpy as np
import torch

from . import _core

# clip_grad_norm_ adds this to the norm; it is no option of it.
CLIP_EPSILON = 1e-6
# AdamW counts its steps in FP32: 2**24 + 1 is the first number that it cannot hold.
FIRST_LARGE_STEP = 2**24
GREATEST_STEP = 2**64 - 1


def _tensor(array):
    """A copy of a float32 NumPy array, so that PyTorch may write to it."""
    return torch.from_numpy(array.copy())


def _unscaled(entry, gradient_scale):
    """float32(stored) * (1 / gradient_scale), out of place: PyTorch wants gradients of the parameter's dtype."""
    with np.errstate(all="ignore"):
        reciprocal = np.float32(1) / np.float32(gradient_scale)
        return _tensor(np.asarray(entry.gradients.astype(np.float32) * reciprocal))


class ClipAndAdamW:
    """torch.nn.utils.clip_grad_norm_ followed by torch.optim.AdamW, on the CPU.

    Every option is named, with the FP32 values of the contract (PyTorch's defaults of eps and weight_decay differ).
    Gradients are unscaled before both, as torch.amp.GradScaler does. Each step makes a new optimizer and puts the
    case's state into it, so that the subject is a function of the case. Empty parameters are left out, as PyTorch
    leaves out a parameter without a gradient.

    Declares what PyTorch documents: a norm in an order of its own (held against the exact norm with a bound), a
    regrouped update, no skipping of bad groups, no validation by the contract's rules. `guard_epsilon`: 1e-6 is part
    of clip_grad_norm_.

    Args:
        fused: AdamW's fused kernel.
        foreach: AdamW's and clip_grad_norm_'s multi-tensor path; not together with fused.
        large_steps: also take cases whose step count PyTorch's FP32 counter cannot hold, from 2**24 on. Off, so that a
            table shows what else there is.
        abilities: others than the declared ones, to see what PyTorch makes of the whole contract.
    """

    def __init__(self, fused=False, foreach=False, large_steps=False, abilities=None):
        self.fused, self.foreach, self.large_steps = bool(fused), bool(foreach), bool(large_steps)
        self.name = f"torch/{'fused' if fused else 'foreach' if foreach else 'single-tensor'}"
        self.guard_epsilon = CLIP_EPSILON
        self.abilities = abilities or _core.Abilities(
            skips=False,
            validates=False,
            norm=_core.NormKind.WithinBound,
            reassociates=True,
        )

    def __call__(self, case):
        if case.operation == "statistics":
            norm = self._norm([_unscaled(entry, case.control.gradient_scale) for entry in case.entries])
            return {"total_norm": norm}
        if not self.large_steps and any(entry.state and entry.state.step >= FIRST_LARGE_STEP for entry in case.entries):
            return NotImplemented
        live = [index for index, entry in enumerate(case.entries) if entry.parameters.size]
        guarded = case.operation == "guarded_step"
        if case.control.skip_update or not live:
            reason = "Requested" if case.control.skip_update else "Empty"
            return {"entries": self._unchanged(case), "skipped": reason if guarded else None}
        parameters = [torch.nn.Parameter(_tensor(case.entries[index].parameters)) for index in live]
        for index, parameter in zip(live, parameters, strict=True):
            parameter.grad = _unscaled(case.entries[index], case.control.gradient_scale)
        norm, clip = None, 1.0
        if guarded:
            norm, clip = self._clip(parameters, case.guard)
        optimizer = self._optimizer(parameters, case.options)
        for index, parameter in zip(live, parameters, strict=True):
            self._restore(optimizer, parameter, case.entries[index].state, case.options)
        optimizer.step()
        results = self._unchanged(case)
        for index, parameter in zip(live, parameters, strict=True):
            results[index] = self._result(optimizer, parameter)
        return {"entries": results, "total_norm": norm, "clip_multiplier": clip}

    @staticmethod
    def _unchanged(case):
        return [_core.AdamWUpdate(entry.parameters, entry.state, False) for entry in case.entries]

    def _norm(self, gradients):
        norm = torch.nn.utils.get_total_norm(gradients, 2.0, error_if_nonfinite=False, foreach=self.foreach)
        return float(norm)

    def _clip(self, parameters, guard):
        """clip_grad_norm_'s norm, and the factor that it used; no max_norm means one that is never reached."""
        if guard.max_norm is None:
            return self._norm([parameter.grad for parameter in parameters]), 1.0
        norm = torch.nn.utils.clip_grad_norm_(
            parameters, guard.max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=self.foreach
        )
        # The line of clip_grads_with_norm_, which does not return its factor.
        return float(norm), float(torch.clamp(guard.max_norm / (norm + CLIP_EPSILON), max=1.0))

    def _optimizer(self, parameters, options):
        return torch.optim.AdamW(
            parameters,
            lr=options.learning_rate,
            betas=(options.beta1, options.beta2),
            eps=options.epsilon,
            weight_decay=options.weight_decay,
            amsgrad=options.amsgrad,
            maximize=options.maximize,
            foreach=self.foreach,
            capturable=False,
            differentiable=False,
            fused=self.fused,
        )

    @staticmethod
    def _restore(optimizer, parameter, state, options):
        if state is None:
            return
        restored = {
            "step": torch.tensor(float(state.step), dtype=torch.float32),
            "exp_avg": _tensor(state.first_moment),
            "exp_avg_sq": _tensor(state.second_moment),
        }
        if options.amsgrad:
            restored["max_exp_avg_sq"] = _tensor(state.max_second_moment)
        optimizer.state[parameter] = restored

    @staticmethod
    def _result(optimizer, parameter):
        state = optimizer.state[parameter]
        maximum = state.get("max_exp_avg_sq")
        return {
            "parameters": parameter.detach().numpy(),
            "first_moment": state["exp_avg"].numpy(),
            "second_moment": state["exp_avg_sq"].numpy(),
            "max_second_moment": None if maximum is None else maximum.numpy(),
            "step": min(int(state["step"]), GREATEST_STEP),
        }
