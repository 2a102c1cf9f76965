#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's own step: clip_grad_norm_ and fused AdamW, for FP32 and F16 also behind a GradScaler. Exit status 2,
with the reason, where there is no PyTorch or it finds no GPU.

  torch_steps.py --device cuda|cpu --elements N,... --dtypes f32,... --out FILE.json

FP32 parameters, as in `gradguard bench step`, and the gradient in device memory. One of half precision becomes FP32 in
each step, as PyTorch's optimizers want the parameters' type; an FP32 one is clipped in place, step after step, which
takes as long whatever its norm. Nothing waits for the device but the end of a sample, and GradScaler where it is on.
Each row is written as soon as it is measured."""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

BLOCKED = 2
SAMPLES = 5
SCALE = 128.0


def load_torch(device):
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch in {sys.executable}: {error}")
        sys.exit(BLOCKED)
    if device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} finds no CUDA device")
        sys.exit(BLOCKED)
    return torch


def measure(torch, device, elements, dtype, scaler_on):
    """A row of the report: [SAMPLES] seconds of a step on one tensor of `elements`."""
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    torch.manual_seed(1)
    parameter = torch.nn.Parameter(torch.randn(elements, device=device))
    gradient = (torch.randn(elements, device=device) * SCALE).to(kind)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, eps=1e-5, weight_decay=1e-4, fused=True)
    scaler = torch.amp.GradScaler(device, init_scale=SCALE, enabled=scaler_on)
    if scaler_on:
        scaler.scale(torch.zeros((), device=device))  # the scaler makes its state at the first use

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def step():
        parameter.grad = gradient.to(torch.float32)  # of FP32 it is the same tensor
        if scaler_on:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        if scaler_on:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()

    for _ in range(2):
        step()
    wait()
    steps = max(3, min(50, (1 << 26) // elements)) if device == "cuda" else 3
    seconds = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        seconds.append((time.perf_counter() - started) / steps)
    return {"elements": elements, "dtype": dtype, "scaler": scaler_on, "steps": steps,
            "device": torch.cuda.get_device_name() if device == "cuda" else "CPU", "samples": seconds,
            "step_seconds": {"median": statistics.median(seconds), "minimum": min(seconds), "maximum": max(seconds)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--elements", required=True)
    parser.add_argument("--dtypes", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    torch = load_torch(options.device)
    if options.device == "cpu":
        torch.set_num_threads(1)  # a rehearsal: small tensors, perhaps a busy machine
    report = {"torch": torch.__version__, "cuda": torch.version.cuda, "rows": []}
    for elements in map(int, options.elements.split(",")):
        for dtype in options.dtypes.split(","):
            for scaler_on in (False, True) if dtype != "bf16" else (False,):
                report["rows"].append(measure(torch, options.device, elements, dtype, scaler_on))
                beside = options.out.with_name(f".{options.out.name}.{os.getpid()}")
                beside.write_text(json.dumps(report, indent=1) + "\n")
                os.replace(beside, options.out)
    print(f"{len(report['rows'])} rows, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
