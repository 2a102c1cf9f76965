# SPDX-License-Identifier: Apache-2.0
"""The real torch.nn.utils.clip_grad_norm_ and torch.optim.AdamW on the CPU, fed with a group of the oracle."""

import os
from dataclasses import dataclass

import numpy as np

from .step import Entry
from .update import State

VARIANTS = ("plain", "foreach", "fused")


def why_not():
    """Why PyTorch cannot be used here; None where it can."""
    if os.environ.get("GRADGUARD_TORCH") == "none":
        return "GRADGUARD_TORCH=none leaves PyTorch out"
    try:
        import torch  # noqa: F401
    except ImportError as error:
        return f"no PyTorch: {error}"
    return None


@dataclass(frozen=True)
class TorchStep:
    """entries: Entry after the step; norm: float32, or None without clipping; gradients: as AdamW got them."""

    entries: list
    norm: np.float32 | None
    gradients: list


def _optimizer(torch, parameters, options, variant):
    chosen = {"plain": {"foreach": False, "fused": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    # Every option by name and FP32-rounded: PyTorch's defaults of epsilon and weight decay are not the contract's.
    return torch.optim.AdamW(
        parameters,
        lr=float(options.learning_rate),
        betas=(float(options.beta1), float(options.beta2)),
        eps=float(options.epsilon),
        weight_decay=float(options.weight_decay),
        amsgrad=options.amsgrad,
        maximize=options.maximize,
        **chosen[variant],
    )


def available_variants():
    """The variants of AdamW that the installed version has on the CPU."""
    import torch

    found = []
    for variant in VARIANTS:
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.zeros(1)
        try:
            from .update import Options

            _optimizer(torch, [parameter], Options(), variant).step()
        except (RuntimeError, TypeError):
            continue
        found.append(variant)
    return found


def step(entries, unscaled, options, variant):
    """entries: non-empty Entry; unscaled: [n] float32 for each, out of place: PyTorch wants gradients in the
    parameter's dtype. -> TorchStep"""
    import torch

    parameters = []
    for entry, gradient in zip(entries, unscaled, strict=True):
        parameter = torch.nn.Parameter(torch.from_numpy(entry.parameters.copy()))
        parameter.grad = torch.from_numpy(gradient.copy())
        parameters.append(parameter)
    optimizer = _optimizer(torch, parameters, options, variant)
    for entry, parameter in zip(entries, parameters, strict=True):
        if entry.state is None:
            continue
        state = {
            "step": torch.tensor(float(entry.state.step)),
            "exp_avg": torch.from_numpy(entry.state.first.copy()),
            "exp_avg_sq": torch.from_numpy(entry.state.second.copy()),
        }
        if options.amsgrad:
            state["max_exp_avg_sq"] = torch.from_numpy(entry.state.maximum.copy())
        optimizer.state[parameter] = state
    norm = None
    if options.max_norm is not None:
        clipped = torch.nn.utils.clip_grad_norm_(parameters, float(options.max_norm), foreach=variant != "plain")
        norm = np.float32(clipped.item())
    gradients = [parameter.grad.numpy().copy() for parameter in parameters]
    optimizer.step()
    after = []
    for entry, parameter in zip(entries, parameters, strict=True):
        state = optimizer.state[parameter]
        moments = [state[name].numpy().copy() for name in ("exp_avg", "exp_avg_sq")]
        maximum = state["max_exp_avg_sq"].numpy().copy() if options.amsgrad else None
        new = State(int(state["step"].item()), *moments, maximum)
        after.append(Entry(entry.name, entry.shape, parameter.detach().numpy().copy(), new))
    return TorchStep(after, norm, gradients)
