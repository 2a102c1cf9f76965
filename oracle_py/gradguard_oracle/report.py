# SPDX-License-Identifier: Apache-2.0
"""How far apart the ways to compute a guarded step are, measured: a table, JSON, and plots.

  python -m gradguard_oracle.report --out FOLDER [--groups N] [--seed S]     (from oracle_py, or with it on PYTHONPATH)

Writes report.txt, report.json, error_against_n.png and .svg, error_against_exponent.png and .svg. Without PyTorch the
comparisons with it are left out, and the report says so. Exit 1 when anything lies outside its enclosure.
"""

import argparse
import dataclasses
import itertools
import json
import platform
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from . import norms, pytorch
from .comparison import Difference, compare_steps, inputs_of, total
from .enclosure import contract_moments, contract_parameters
from .safetensors_file import StoredTensor, write_atomically
from .statistics import group_stats
from .step import Entry, guarded_step
from .update import Options, State, coefficients, effective_gradient

F32 = np.float32
STEPS, START_STEP = 5, 7
SCALES = [F32(s) for s in (8, 8, 3, 16, 1)]
SHAPES = [(37,), (300,), (1500,)]
SIZES = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144]
EXPONENTS = range(-24, 25, 3)
DTYPES = ("F32", "F16", "BF16")
# Epsilon near |g|, weight decay not 0 (numerics, "Inputs").
STRONG = Options(learning_rate=F32(0.25), beta1=F32(0.8), beta2=F32(0.95), epsilon=F32(0.25), weight_decay=F32(0.1))


def stored(values, dtype):
    """float32 values in the dtype (BF16 by dropping bits)."""
    if dtype == "F32":
        return StoredTensor.from_float32(values)
    if dtype == "F16":
        return StoredTensor("F16", values.shape, values.astype(np.float16).view(np.uint16))
    return StoredTensor("BF16", values.shape, (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16))


def normal(rng, shape, size=1.0):
    return (rng.normal(size=shape) * size).astype(F32)


def scenario(rng, dtype, options, later, size=1.0, shapes=SHAPES):
    """(entries, gradients of each step)."""
    entries = []
    for index, shape in enumerate(shapes):
        state = None
        if later:
            second, greatest = (np.square(normal(rng, shape)) for _ in range(2))
            state = State(START_STEP, normal(rng, shape), second, greatest if options.amsgrad else None)
        entries.append(Entry(f"e{index}", shape, normal(rng, shape), state))
    return entries, [[stored(normal(rng, s, size * float(scale)), dtype) for s in shapes] for scale in SCALES]


def from_the_middle(values, interval, where):
    """Difference of float32 values from the FP64 middle of their enclosure: in FP32 units of the middle, and as a
    fraction of half the width."""
    middle, half = (interval.lo + interval.hi) / 2, (interval.hi - interval.lo) / 2
    apart = np.abs(values.astype(np.float64) - middle)
    inside = interval.contains(values)
    outside = [] if inside.all() else [f"{where}[{int(np.argmin(inside))}] of the oracle"]
    ulps = apart / np.spacing(np.abs(middle).astype(F32)).astype(np.float64)
    return Difference(
        len(values), int((ulps > 0.5).sum()), float(ulps.max(initial=0)), float((apart / half).max(initial=0)), outside
    )


def oracle_in_its_enclosure(entries, gradients, scale, options):
    """{key: Difference} of the oracle's step from the middles of the contract's enclosures."""
    after, report = guarded_step(entries, gradients, scale, options)
    found = {}
    for old, new, stored_tensor in zip(entries, after, gradients, strict=True):
        c = coefficients(options, old.state.step if old.state else 0, scale, report.clip)
        inputs = inputs_of(old)
        m, v = contract_moments(inputs, effective_gradient(stored_tensor, c, options.maximize), options, c)
        x = new.state.maximum if options.amsgrad else new.state.second
        p = contract_parameters(inputs, new.state.first, x, options, c)
        operands = {"exp_avg": (new.state.first, m), "exp_avg_sq": (new.state.second, v), "param": (new.parameters, p)}
        for key, (values, interval) in operands.items():
            found.setdefault(key, Difference()).add(from_the_middle(values, interval, f"{old.name}.{key}"))
    return found


def row(comparison, conditions, key, difference):
    return {
        "comparison": comparison,
        **conditions,
        "key": key,
        "elements": difference.elements,
        "different": difference.different,
        "greatest_ulp": difference.ulp,
        "greatest_fraction": difference.fraction,
        "outside": difference.outside,
    }


def update_rows(seed, variants, groups):
    """Every combination of options: the oracle in its enclosure, and against each variant of PyTorch's AdamW."""
    rows = []
    for amsgrad, maximize, max_norm in itertools.product((False, True), (False, True), (None, 0.5)):
        norm = None if max_norm is None else F32(max_norm)
        options = dataclasses.replace(STRONG, amsgrad=amsgrad, maximize=maximize, max_norm=norm)
        conditions = {"amsgrad": amsgrad, "maximize": maximize, "clipped": max_norm is not None}
        own, theirs = {}, {variant: [] for variant in variants}
        for number, dtype, later in itertools.product(range(groups), DTYPES, (False, True)):
            rng = np.random.default_rng([seed, number, DTYPES.index(dtype), later, amsgrad, maximize, norm is None])
            entries, gradients = scenario(rng, dtype, options, later)
            for key, difference in oracle_in_its_enclosure(entries, gradients[0], SCALES[0], options).items():
                own.setdefault(key, Difference()).add(difference)
            for variant in variants:
                theirs[variant] += compare_steps(entries, gradients, SCALES, options, variant)
        rows += [row("contract's lines in FP32", conditions, key, d) for key, d in own.items()]
        for variant, results in theirs.items():
            rows += [row(f"PyTorch, {variant}", conditions, key, d) for key, d in total(results).items()]
    return rows


def _relative_error(norm, exact_square):
    """|norm^2 - exact| / exact, halved: of the norm itself, to first order."""
    return float(abs(Fraction(float(norm)) ** 2 - exact_square) / exact_square / 2)


def norm_rows(seed, has_torch):
    """Errors of the norm against n, in u = 2^-24, with the bounds computed for the same values."""
    rows = []
    for dtype, count in itertools.product(DTYPES, SIZES):
        rng = np.random.default_rng([seed, DTYPES.index(dtype), count])
        tensor = stored(normal(rng, (count,)), dtype)
        stats = group_stats([tensor], 1)
        exact = stats.summaries[0].exact_sum * norms.SQUARE_UNIT
        bound = float(Fraction(norms.tree_error(tensor.values())) / exact / 2)
        low, high = norms.norm_enclosure(stats, [norms.tree_error(tensor.values())])
        made = {
            "dtype": dtype,
            "n": count,
            "tree_error_u": _relative_error(stats.total_norm, exact) / norms.U,
            "tree_bound_u": bound / norms.U,
            "inside": bool(low <= Fraction(stats.total_norm) ** 2 <= high),
            "any_order_bound_u": (norms.any_order_factor(count, 1) - 1) / norms.U,
        }
        if has_torch:
            import torch

            parameter = torch.nn.Parameter(torch.zeros(count))
            parameter.grad = torch.from_numpy(tensor.values().copy())
            norm = torch.nn.utils.clip_grad_norm_([parameter], 1e30).item()
            made["torch_error_u"] = _relative_error(norm, exact) / norms.U
        rows.append(made)
    return rows


def exponent_rows(seed, has_torch):
    """Differences against the size of the gradients: 2^-24 to 2^24, epsilon and the old moments as they are."""
    rows = []
    for exponent in EXPONENTS:
        made = {"exponent": exponent, "keys": {}}
        for dtype in dict.fromkeys((DTYPES[0], DTYPES[-1])):
            rng = np.random.default_rng([seed, exponent + 100, DTYPES.index(dtype)])
            options = dataclasses.replace(STRONG, amsgrad=True, max_norm=F32(2.0 ** (exponent + 2)))
            entries, gradients = scenario(rng, dtype, options, True, 2.0**exponent, [(1500,)])
            if has_torch:
                found = total(compare_steps(entries, gradients, SCALES, options, "plain"))
            else:
                found = oracle_in_its_enclosure(entries, gradients[0], SCALES[0], options)
            for key, difference in found.items():
                kept = made["keys"].setdefault(key, {"greatest_ulp": 0, "greatest_fraction": 0.0, "outside": []})
                kept["greatest_ulp"] = max(kept["greatest_ulp"], difference.ulp)
                kept["greatest_fraction"] = max(kept["greatest_fraction"], difference.fraction)
                kept["outside"] += difference.outside
        rows.append(made)
    return rows


def measure(seed=1, groups=1):
    """-> the report as plain data."""
    missing = pytorch.why_not()
    variants = [] if missing else pytorch.available_variants()
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    if not missing:
        import torch

        versions["torch"] = torch.__version__
    updates = update_rows(seed, variants, groups)
    sizes, exponents = norm_rows(seed, not missing), exponent_rows(seed, not missing)
    problems = [problem for r in updates for problem in r["outside"]]
    problems += [p for r in exponents for of_key in r["keys"].values() for p in of_key["outside"]]
    problems += [f"norm of {r['n']} values of {r['dtype']} is outside its bound" for r in sizes if not r["inside"]]
    return {
        "schema": 1,
        "seed": seed,
        "versions": versions,
        "without_pytorch": missing,
        "steps": STEPS,
        "updates": updates,
        "norms": sizes,
        "exponents": exponents,
        "outside": problems,
    }


def as_text(report):
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    lines = [
        f"Differences of guarded steps; {versions}; seed {report['seed']}, {report['steps']} steps from a common state"
    ]
    if report["without_pytorch"]:
        lines.append(f"without PyTorch: {report['without_pytorch']}")
    lines += [
        "",
        f"{'comparison':26}{'AMSGrad':9}{'maximize':10}{'clipped':9}{'key':16}{'elements':>10}{'different':>11}"
        f"{'greatest ulp':>14}{'of enclosure':>14}",
    ]
    for r in report["updates"]:
        words = ["yes" if r[name] else "no" for name in ("amsgrad", "maximize", "clipped")]
        lines.append(
            f"{r['comparison']:26}{words[0]:9}{words[1]:10}{words[2]:9}{r['key']:16}{r['elements']:>10}"
            f"{r['different']:>11}{r['greatest_ulp']:>14.6g}{r['greatest_fraction']:>14.4f}"
        )
    lines += [
        "",
        "Norm of n normal values: relative error and bounds in u = 2^-24",
        f"{'dtype':8}{'n':>8}{'FP32 tree':>12}{'its bound':>12}{'PyTorch':>12}{'any order':>12}",
    ]
    for r in report["norms"]:
        theirs = f"{r['torch_error_u']:.3f}" if "torch_error_u" in r else "-"
        lines.append(
            f"{r['dtype']:8}{r['n']:>8}{r['tree_error_u']:>12.3f}{r['tree_bound_u']:>12.3f}{theirs:>12}"
            f"{r['any_order_bound_u']:>12.1f}"
        )
    lines += ["", f"{len(report['outside'])} outside an enclosure", *report["outside"][:20]]
    return "\n".join(lines) + "\n"


def write(report, folder):
    """Table and JSON. -> the paths."""
    contents = {"report.txt": as_text(report), "report.json": json.dumps(report, indent=1) + "\n"}
    for name, content in contents.items():
        write_atomically(folder / name, content.encode())
    return [folder / name for name in contents]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--groups", type=int, default=4, help="groups for each combination of options and dtype")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.groups < 1 or options.seed < 0:
        parser.error("--groups wants at least 1, --seed at least 0")
    report = measure(options.seed, options.groups)
    paths = write(report, options.out)
    from . import plots

    paths += plots.draw(report, options.out)
    print(as_text(report), end="")
    print("written: " + ", ".join(map(str, paths)))
    return 1 if report["outside"] else 0


if __name__ == "__main__":
    sys.exit(main())
