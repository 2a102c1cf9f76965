# SPDX-License-Identifier: Apache-2.0
"""Writes the test vectors in property_tests/vectors, which the C++ tests replay on every device.

  python oracle_py/make_vectors.py            writes what is missing or differs
  python oracle_py/make_vectors.py --check    writes nothing; exit 1 when a file is not what this script makes
  with --only exact or --only torch for the files of one source

Files exact_DTYPE.safetensors hold the contract's own bits (gradguard_oracle), torch_DTYPE.safetensors what the
real clip_grad_norm_ and AdamW of PyTorch made on the CPU. Each file has every combination of AMSGrad, maximize,
clipping, and starting without a state or with one, as a chain of steps: the state after a step is the state before the
next.

  metadata      source; sha256 (over the tensors' names and bytes, in byte order of the names); cases: JSON, an
                object: name of the case -> options (bits of FP32 numbers), entries (names), start_step (0: no state),
                steps: a list of gradient_scale and, in the exact files, clip_multiplier, total_norm (bits of an FP64),
                skip_reason (or null), summaries ([[scale, sumsq, bad]])
  CASE/start/ENTRY.param (.exp_avg, .exp_avg_sq, .max_exp_avg_sq)     before the first step
  CASE/K/ENTRY.grad                                                  gradients of step K = 0, 1, ...
  CASE/K/ENTRY.param (and so on)     after step K. Exact: [n]. PyTorch: [3, n], its value, and the least and the
                greatest FP32 number that either formula can make of what both sides had
                (gradguard_oracle/comparison.py)

PyTorch's vectors are made by the version in requirements-torch.txt, without the processor's vector extensions, so that
they do not depend on the machine. Exit 2: --check could not look at them, for want of that version.
"""

import argparse
import dataclasses
import hashlib
import itertools
import json
import os
import sys
from pathlib import Path

os.environ["ATEN_CPU_CAPABILITY"] = "default"  # read when PyTorch is imported

import numpy as np  # noqa: E402

from gradguard_oracle import pytorch, safetensors_file  # noqa: E402
from gradguard_oracle.comparison import compare_step  # noqa: E402
from gradguard_oracle.float32 import bits_of  # noqa: E402
from gradguard_oracle.safetensors_file import StoredTensor  # noqa: E402
from gradguard_oracle.step import Entry, guarded_step  # noqa: E402
from gradguard_oracle.update import Options, State  # noqa: E402

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "property_tests" / "vectors"
DTYPES = ("F32", "F16", "BF16")
F32 = np.float32
# Epsilon near |g| and weight decay not 0: p hardly depends on |g| otherwise.
OPTIONS = Options(learning_rate=F32(0.25), beta1=F32(0.8), beta2=F32(0.95), epsilon=F32(0.25), weight_decay=F32(0.1))
CLIPPED, START_STEP = F32(0.75), 7
SCALES = [8.0, 8.0, 3.0, 16.0, 1.0]
BAD_STEP = 3  # of an exact chain of six: one infinity, so the whole step is skipped
SHAPES = {"a": (33,), "b": (5, 9)}
TWO_STAGES = "two-stages"  # a case beside the combinations: more than 1024 elements
LIMIT_BYTES = 3_000_000


def text_of(value):
    return f"0x{int(bits_of(np.array([value], F32))[0]):08X}"


def rounded_to(values, dtype, shape):
    if dtype == "F32":
        bits = values.astype(F32).view(np.uint32)
    elif dtype == "F16":
        bits = values.astype(np.float16).view(np.uint16)
    else:
        bits = (values.astype(F32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return StoredTensor(dtype, shape, bits)


def normal(rng, shape, size=1.0):
    """Normal deviates from integers, the same on every platform: the mean of twelve uniform ones."""
    count = int(np.prod(shape, dtype=int))
    uniform = rng.integers(0, 1 << 20, (12, count)).sum(axis=0)
    return ((uniform - 6 * (1 << 20)) * (size / (1 << 20))).astype(F32)


def combinations():
    """{name of a case: (Options, whether it starts with a state)}."""
    cases = {}
    for amsgrad, maximize, clipped, later in itertools.product((False, True), repeat=4):
        words = (
            "amsgrad" if amsgrad else "adamw",
            "maximize" if maximize else "minimize",
            "clipped" if clipped else "unclipped",
            "later" if later else "first",
        )
        norm = CLIPPED if clipped else None
        cases["-".join(words)] = (
            dataclasses.replace(OPTIONS, amsgrad=amsgrad, maximize=maximize, max_norm=norm),
            later,
        )
    return cases


def start(rng, shapes, options, later):
    entries = []
    for name, shape in shapes.items():
        parameters, state = normal(rng, shape), None
        if later:
            first, second, greatest = normal(rng, shape), np.square(normal(rng, shape)), np.square(normal(rng, shape))
            state = State(START_STEP, first, second, greatest if options.amsgrad else None)
        entries.append(Entry(name, shape, parameters, state))
    return entries


def described(options, entries, later):
    names = ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "guard_epsilon")
    return {name: text_of(getattr(options, name)) for name in names} | {
        "max_norm": None if options.max_norm is None else text_of(options.max_norm),
        "amsgrad": options.amsgrad,
        "maximize": options.maximize,
        "entries": [entry.name for entry in entries],
        "start_step": START_STEP if later else 0,
        "steps": [],
    }


def store(tensors, prefix, entry, arrays=None):
    for suffix, values in (entry.operands() if arrays is None else arrays).items():
        shape = entry.shape if arrays is None else (3, len(entry.parameters))
        tensors[f"{prefix}/{entry.name}.{suffix}"] = StoredTensor.from_float32(values, shape)


def gradients_of(rng, shapes, dtype, scale, bad):
    made = [rounded_to(normal(rng, shape, float(scale)), dtype, shape) for shape in shapes.values()]
    if bad:
        made[-1].bits[-1] = {"F32": 0x7F800000, "F16": 0x7C00, "BF16": 0x7F80}[dtype]
    return made


def exact_step(entries, gradients, scale, options, told):
    after, report = guarded_step(entries, gradients, scale, options)
    nothing = (np.float32(0), np.float32(0), False)
    found = [nothing if s is None else (s.scale, s.sumsq, s.bad) for s in report.stats.summaries]
    norm = np.float64(report.stats.total_norm)
    told |= {
        "clip_multiplier": text_of(report.clip),
        "total_norm": f"0x{int(norm.view(np.uint64)):016X}",
        "skip_reason": report.skip_reason,
        "summaries": [[text_of(part) for part in summary] for summary in found],
    }
    return after, [None] * len(after)


def inner_float32(interval):
    """The least and the greatest FP32 number inside."""
    low, high = interval.lo.astype(F32), interval.hi.astype(F32)
    low = np.where(low < interval.lo, np.nextafter(low, F32(np.inf)), low)
    return low, np.where(high > interval.hi, np.nextafter(high, F32(-np.inf)), high)


def torch_step(entries, gradients, scale, options, told):
    del told
    made = compare_step(entries, gradients, scale, options, "plain")
    problems = [problem for difference in made.differences.values() for problem in difference.outside]
    if problems:
        raise SystemExit(f"PyTorch and the oracle disagree: {problems[0]}")
    stacked = []
    for entry, hulls in zip(made.theirs, made.hulls, strict=True):
        stacked.append({k: np.stack([v, *inner_float32(hulls[k])]) for k, v in entry.operands().items()})
    return made.theirs, stacked


def make_case(tensors, name, seed, shapes, dtype, options, later, source):
    """Adds one chain to the tensors; -> what the metadata says of it."""
    rng = np.random.default_rng(seed)
    entries = start(rng, shapes, options, later)
    told = described(options, entries, later)
    for entry in entries:
        store(tensors, f"{name}/start", entry)
    exact = source == "exact"
    for k, scale in enumerate(SCALES[:BAD_STEP] + SCALES[BAD_STEP - 1 :] if exact else SCALES):
        gradients = gradients_of(rng, shapes, dtype, F32(scale), exact and k == BAD_STEP)
        step_told = {"gradient_scale": text_of(scale)}
        make = exact_step if exact else torch_step
        entries, arrays = make(entries, gradients, F32(scale), options, step_told)
        told["steps"].append(step_told)
        for entry, stored, of_entry in zip(entries, gradients, arrays, strict=True):
            tensors[f"{name}/{k}/{entry.name}.grad"] = stored
            store(tensors, f"{name}/{k}", entry, of_entry)
    return told


def digest(tensors):
    content = hashlib.sha256()
    for name in sorted(tensors, key=lambda text: text.encode()):
        tensor = tensors[name]
        content.update(name.encode() + b"\0" + tensor.dtype.encode() + b"\0")
        content.update(tensor.bits.astype(tensor.bits.dtype.newbyteorder("<")).tobytes())
    return content.hexdigest()


def make_file(source, dtype, described_source):
    tensors, told = {}, {}
    number = DTYPES.index(dtype)
    for index, (name, (options, later)) in enumerate(combinations().items()):
        told[name] = make_case(tensors, name, [71, number, index], SHAPES, dtype, options, later, source)
    if source == "exact":
        options = dataclasses.replace(OPTIONS, amsgrad=True, max_norm=CLIPPED)
        shapes = {"a": (1100,), "b": (0,), "c": ()}
        told[TWO_STAGES] = make_case(tensors, TWO_STAGES, [72, number], shapes, dtype, options, True, source)
    metadata = {"source": described_source, "sha256": digest(tensors), "cases": json.dumps(told, sort_keys=True)}
    return safetensors_file.encode(tensors, metadata)


def wanted_torch():
    for line in (HERE / "requirements-torch.txt").read_text().splitlines():
        if line.startswith("torch=="):
            return line.removeprefix("torch==").strip()
    raise SystemExit("requirements-torch.txt names no version of torch")


def no_torch():
    """Why PyTorch's vectors cannot be made here; None when they can."""
    reason = pytorch.why_not()
    if reason:
        return reason
    import torch

    found = torch.__version__.partition("+")[0]
    return None if found == wanted_torch() else f"PyTorch {found} is here, the vectors are those of {wanted_torch()}"


def sources_for(only):
    """({source: its description}, why PyTorch's files cannot be made or None)."""
    sources, missing = {"exact": "the contract's own bits: gradguard_oracle"}, None
    if only != "exact":
        missing = no_torch()
    if only != "exact" and not missing:
        import torch

        torch.set_num_threads(1)
        sources["torch"] = f"PyTorch {wanted_torch()}, CPU, clip_grad_norm_ and AdamW (foreach=False, fused=False)"
    return {k: v for k, v in sources.items() if only in (None, k)}, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is there, write nothing")
    parser.add_argument("--only", choices=["exact", "torch"], help="the files of one source")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    sources, missing = sources_for(options.only)
    if missing and not options.check:
        raise SystemExit(f"make_vectors: {missing} (--only exact does without it)")
    total, stale = 0, []
    for source, dtype in itertools.product(sources, DTYPES):
        content = make_file(source, dtype, sources[source])
        total += len(content)
        path = options.folder / f"{source}_{dtype.lower()}.safetensors"
        if not options.check:
            safetensors_file.write_atomically(path, content)
        elif not path.is_file() or path.read_bytes() != content:
            stale.append(path.name)
    if total > LIMIT_BYTES:
        raise SystemExit(f"make_vectors: {total} bytes, at most {LIMIT_BYTES} are wanted")
    for name in stale:
        print(f"{name} is not what make_vectors.py makes")
    if not stale and missing:
        print(f"blocked: {missing}")
    return 1 if stale else 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
