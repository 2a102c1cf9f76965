#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels written in Triton, and their PTX (no GPU needed; Triton comes with PyTorch).

  tests/programs/triton/make.py           compile and rewrite NAME.ptx and provenance.json
  tests/programs/triton/make.py --check   compile and fail if the checked-in PTX differs (exit 1)

Exit 2 when Triton is missing or is another release than the one on record (blocked, with the reason).
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROVENANCE = HERE / "provenance.json"
TARGET = ("cuda", 80, 32)
BLOCK = 256
WARPS = 4

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as error:
    print(f"blocked: {error}")
    sys.exit(2)


@triton.jit
def adamw(p_ptr, m_ptr, v_ptr, g_ptr, n, lr, beta1, beta2, eps, decay, c1, c2, BLOCK: tl.constexpr):
    """One AdamW step on FP32 parameters, with a plain division and square root."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    g = tl.load(g_ptr + at, mask=live)
    p = tl.load(p_ptr + at, mask=live)
    m = beta1 * tl.load(m_ptr + at, mask=live) + (1.0 - beta1) * g
    v = beta2 * tl.load(v_ptr + at, mask=live) + (1.0 - beta2) * g * g
    p = p * (1.0 - lr * decay) - lr * (m / c1) / (tl.sqrt(v / c2) + eps)
    tl.store(p_ptr + at, p, mask=live)
    tl.store(m_ptr + at, m, mask=live)
    tl.store(v_ptr + at, v, mask=live)


@triton.jit
def row_max(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """out[row] = largest value of the row; one program a row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def sum_of_squares(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[block] = sum of the squares of the block's values."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x * x, axis=0))


@triton.jit
def sum_of_squares_bf16(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The same over BF16 values, summed in FP32."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x * x, axis=0))


F32, BF16, I32, SCALAR = "*fp32", "*bf16", "i32", "fp32"
KERNELS = {
    "adamw": (adamw, [F32] * 4 + [I32] + [SCALAR] * 7),
    "row_max": (row_max, [F32, F32, I32]),
    "sum_of_squares": (sum_of_squares, [F32, F32, I32]),
    "sum_of_squares_bf16": (sum_of_squares_bf16, [BF16, F32, I32]),
}


def compile_kernel(name):
    kernel, types = KERNELS[name]
    signature = dict(zip(kernel.arg_names, types + ["constexpr"]))
    source = ASTSource(fn=kernel, signature=signature, constexprs={"BLOCK": BLOCK})
    made = triton.compile(source, target=GPUTarget(*TARGET), options={"num_warps": WARPS})
    # The source lines stay; debug sections go, and so does what refers to them. No folders of the machine it ran on.
    text = re.sub(r"\n\t\.section\s+\.debug.*\Z", "\n", made.asm["ptx"], flags=re.S)
    text = re.sub(r", function_name \S+, inlined_at [\d ]+", " ", text)
    text = text.replace(str(HERE) + "/", "").replace(str(pathlib.Path(triton.__file__).parent.parent) + "/", "")
    return re.sub(r"[ \t]+$", "", text, flags=re.M).rstrip("\n") + "\n", made.metadata.shared


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        recorded = json.loads(PROVENANCE.read_text())["triton"]
        if recorded != triton.__version__:
            print(f"blocked: Triton {triton.__version__} here, the record is of {recorded}")
            return 2
    made = {name: compile_kernel(name) for name in KERNELS}
    if options.check:
        different = [n for n, (text, _) in made.items() if (HERE / f"{n}.ptx").read_text() != text]
        for name in different:
            print(f"tests/programs/triton/{name}.ptx is not what Triton makes of make.py")
        return 1 if different else 0
    for name, (text, _) in made.items():
        part = HERE / f"{name}.ptx.part"
        part.write_text(text)
        os.replace(part, HERE / f"{name}.ptx")
    record = {
        "triton": triton.__version__,
        "python": ".".join(map(str, sys.version_info[:2])),
        "target": list(TARGET),
        "block": BLOCK,
        "warps": WARPS,
        "make.py": sha256(pathlib.Path(__file__).read_bytes()),
        "kernels": {n: {"ptx": sha256(text.encode()), "shared_bytes": shared} for n, (text, shared) in made.items()},
    }
    PROVENANCE.write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
