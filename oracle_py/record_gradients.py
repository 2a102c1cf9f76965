#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records real gradient groups of three small training runs, made with PyTorch on the CPU.

  bf16_transformer   a character-level transformer on the text of the GNU GPL version 3, BF16 working copies of
                     FP32 masters, recorded after some training, so the first file carries real moments
  f16_loss_scaling   a character-level multilayer perceptron on the same text in F16 under a growing and
                     backing-off loss scale; the scale becomes too large on the way and one step really overflows
  f32_digits         an F32 network on scikit-learn's handwritten digits, from the first step on

One safetensors file a step. The first of a run has NAME.param (F32), NAME.grad and, after some training,
NAME.exp_avg and NAME.exp_avg_sq (F32); the later ones have the gradients alone. Gradients are stored as autograd
produced them, still multiplied by the metadata's gradient_scale. Between the steps the parameters move by the
guarded AdamW step of the numerical contract (package gradguard_oracle), so each file's gradients belong to the
parameters that one gets by stepping through the files before it.

The script is deterministic: fixed seeds, one thread, no oneDNN. Writing again what is there changes nothing.
"""

import argparse
import hashlib
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

from gradguard_oracle import safetensors_file
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import Entry, guarded_step
from gradguard_oracle.update import Options

GPL3 = Path("/usr/share/common-licenses/GPL-3")
GPL3_SHA256 = "3972dc9744f6499f0f9b2dbf76696f2ae7ad8af9b23dde66d6af86c9dfb36986"
LIMIT_BYTES = 3_000_000
OPTIONS = Options()  # the contract's defaults: lr 1e-3, betas 0.9 and 0.999, eps 1e-5, wd 1e-4, max_norm 1
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape

        def split(t):
            return t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = (split(t) for t in self.qkv(x).split(width, dim=2))
        weights = (q @ k.transpose(2, 3)) / (width // self.heads) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = weights.masked_fill(future, float("-inf")).softmax(dim=3)
        return self.projection((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential()
        self.mlp.add_module("expand", nn.Linear(width, 4 * width))
        self.mlp.add_module("gelu", nn.GELU())
        self.mlp.add_module("contract", nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """[batch, context] characters -> [batch, context, characters] logits of the next one."""

    def __init__(self, characters, context=64, width=48, heads=4):
        super().__init__()
        self.token_embedding = nn.Embedding(characters, width)
        self.position_embedding = nn.Embedding(context, width)
        self.block0 = Block(width, heads)
        self.block1 = Block(width, heads)
        self.final_norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, index):
        x = self.token_embedding(index) + self.position_embedding(torch.arange(index.shape[1]))
        return self.head(self.final_norm(self.block1(self.block0(x))))


class CharacterPerceptron(nn.Module):
    """[batch, context] characters -> [batch, characters] logits of the next one."""

    def __init__(self, characters, context=16, width=24, hidden=80):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.hidden = nn.Linear(context * width, hidden)
        self.output = nn.Linear(hidden, characters)

    def forward(self, index):
        return self.output(torch.tanh(self.hidden(self.embedding(index).flatten(1))))


class DigitClassifier(nn.Module):
    """[batch, 64] pixels in 0..1 -> [batch, 10] logits."""

    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(64, 128)
        self.layer2 = nn.Linear(128, 64)
        self.classifier = nn.Linear(64, 10)

    def forward(self, pixels):
        return self.classifier(torch.relu(self.layer2(torch.relu(self.layer1(pixels)))))


@dataclass
class LossScale:
    """Doubles after `interval` good steps in a row, halves on a skipped one."""

    value: float
    interval: int
    good: int = 0

    def observe(self, skipped):
        self.good = 0 if skipped else self.good + 1
        if skipped:
            self.value /= 2
        elif self.good == self.interval:
            self.value, self.good = 2 * self.value, 0


def to_stored(tensor):
    integer = torch.int32 if tensor.dtype == torch.float32 else torch.int16
    bits = tensor.detach().contiguous().view(integer).numpy().reshape(-1)
    return StoredTensor(
        DTYPES[tensor.dtype], tuple(tensor.shape), bits.view(np.uint32 if integer == torch.int32 else np.uint16)
    )


class Trainer:
    """FP32 masters stepped by the contract's guarded AdamW; the model holds working copies in `dtype`."""

    def __init__(self, model, dtype):
        self.model = model.to(dtype)
        named = sorted(self.model.named_parameters(), key=lambda item: item[0].encode())
        self.parameters = dict(named)
        self.entries = [
            Entry(name, tuple(p.shape), p.detach().float().numpy().reshape(-1).copy(), None) for name, p in named
        ]

    def gradients(self, loss, scale):
        """StoredTensors in the entries' order, of loss * scale."""
        self.model.zero_grad(set_to_none=True)
        (loss * scale).backward()
        return [to_stored(parameter.grad) for parameter in self.parameters.values()]

    def step(self, gradients, scale):
        """One guarded step; the working copies are rounded anew from the masters. -> StepReport."""
        self.entries, report = guarded_step(self.entries, gradients, scale, OPTIONS)
        with torch.no_grad():
            for entry in self.entries:
                master = torch.from_numpy(entry.parameters.reshape(entry.shape))
                self.parameters[entry.name].copy_(master)  # rounds to the working dtype
        return report


def group(entries, gradients, scale, first):
    """Tensors and metadata of one step's file."""
    metadata = {"gradient_scale": repr(float(scale))}
    tensors = {f"{entry.name}.grad": stored for entry, stored in zip(entries, gradients, strict=True)}
    for entry in entries if first else ():
        tensors[f"{entry.name}.param"] = StoredTensor.from_float32(entry.parameters, entry.shape)
        if entry.state is not None:
            tensors[f"{entry.name}.exp_avg"] = StoredTensor.from_float32(entry.state.first, entry.shape)
            tensors[f"{entry.name}.exp_avg_sq"] = StoredTensor.from_float32(entry.state.second, entry.shape)
            metadata["step"] = str(entry.state.step)
    return tensors, metadata


def characters_of(text):
    """-> ([n] int64 indices, number of different characters)."""
    alphabet = sorted(set(text))
    index = {character: i for i, character in enumerate(alphabet)}
    return torch.tensor([index[character] for character in text]), len(alphabet)


def record(trainer, next_loss, scale, warmup, steps):
    """Trains `warmup` steps unrecorded, then `steps` recorded ones -> ([file bytes], [facts of each step])."""
    files, facts = [], []
    for number in range(warmup + steps):
        loss, used = next_loss(), scale.value
        gradients = trainer.gradients(loss, used)
        if number >= warmup:
            files.append(safetensors_file.encode(*group(trainer.entries, gradients, used, not files)))
        report = trainer.step(gradients, used)
        scale.observe(report.skip_reason is not None)
        if number >= warmup:
            bad = [e.name for e, s in zip(trainer.entries, report.stats.summaries, strict=True) if s.bad]
            facts.append(
                {
                    "loss": float(loss.detach()),
                    "gradient_scale": used,
                    "total_norm": str(report.stats.total_norm),
                    "skip_reason": report.skip_reason,
                    "tensors_with_overflow": bad,
                }
            )
    return files, facts


def bf16_transformer(text):
    torch.manual_seed(1)
    data, characters = characters_of(text)
    trainer = Trainer(Transformer(characters), torch.bfloat16)
    picks = torch.Generator().manual_seed(11)

    def next_loss(batch=16, context=64):
        start = torch.randint(len(data) - context, (batch,), generator=picks)
        window = torch.stack([data[i : i + context + 1] for i in start])
        logits = trainer.model(window[:, :-1])
        return functional.cross_entropy(logits.float().flatten(0, 1), window[:, 1:].flatten())

    return trainer, record(trainer, next_loss, LossScale(1.0, interval=1 << 30), warmup=200, steps=5)


def f16_loss_scaling(text):
    torch.manual_seed(2)
    data, characters = characters_of(text)
    trainer = Trainer(CharacterPerceptron(characters), torch.float16)
    picks = torch.Generator().manual_seed(12)

    def next_loss(batch=64, context=16):
        start = torch.randint(len(data) - context, (batch,), generator=picks)
        window = torch.stack([data[i : i + context + 1] for i in start])
        logits = trainer.model(window[:, :-1])
        return functional.cross_entropy(logits.float(), window[:, -1])

    return trainer, record(trainer, next_loss, LossScale(INITIAL_F16_SCALE, interval=2), warmup=0, steps=7)


def f32_digits():
    torch.manual_seed(3)
    digits = load_digits()
    pixels = torch.tensor(digits.data / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    trainer = Trainer(DigitClassifier(), torch.float32)
    picks = torch.Generator().manual_seed(13)

    def next_loss(batch=64):
        chosen = torch.randint(len(labels), (batch,), generator=picks)
        return functional.cross_entropy(trainer.model(pixels[chosen]), labels[chosen])

    return trainer, record(trainer, next_loss, LossScale(1.0, interval=1 << 30), warmup=0, steps=5)


# Four good steps while it doubles once; at the next doubling the output layer leaves F16's range.
INITIAL_F16_SCALE = 2.0**18


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def read_text(path):
    content = path.read_bytes()
    if sha256(content) != GPL3_SHA256:
        sys.exit(f"{path}: not the text that was recorded from (SHA-256 {sha256(content)}, wanted {GPL3_SHA256})")
    return content.decode("ascii")


def make_runs(text):
    """-> ({relative path: bytes}, provenance of the runs)."""
    makers = {
        "bf16_transformer": lambda: bf16_transformer(text),
        "f16_loss_scaling": lambda: f16_loss_scaling(text),
        "f32_digits": f32_digits,
    }
    files, runs = {}, {}
    for name, maker in makers.items():
        trainer, (contents, facts) = maker()
        for number, content in enumerate(contents):
            path = f"{name}/step_{number:03}.safetensors"
            files[path] = content
            facts[number] = {"file": path, "bytes": len(content), "sha256": sha256(content), **facts[number]}
        after = b"".join(entry.parameters.astype("<f4").tobytes() for entry in trainer.entries)
        runs[name] = {
            "parameters": sum(len(e.parameters) for e in trainer.entries),
            "tensors": len(trainer.entries),
            "steps": facts,
            "sha256_of_parameters_after_last_step": sha256(after),
        }
    return files, runs


def provenance(runs):
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }
    return {
        "schema": 1,
        "script": "oracle_py/record_gradients.py",
        "text_sha256": GPL3_SHA256,
        "versions": versions,
        "runs": runs,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent / "property_tests" / "recorded"
    parser.add_argument(
        "--out", type=Path, default=default, help="folder to write to (default: property_tests/recorded)"
    )
    parser.add_argument(
        "--text", type=Path, default=GPL3, help=f"the GPL version 3 as Debian ships it (default: {GPL3})"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file would differ")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.enabled = False

    files, runs = make_runs(read_text(arguments.text))
    size = sum(len(content) for content in files.values())
    if size > LIMIT_BYTES:
        sys.exit(f"{size} bytes are more than the {LIMIT_BYTES} allowed: nothing written")
    files["PROVENANCE.json"] = (json.dumps(provenance(runs), indent=1) + "\n").encode()
    if arguments.check:
        differing = [
            p for p, c in files.items() if not (arguments.out / p).exists() or (arguments.out / p).read_bytes() != c
        ]
        sys.exit(f"differs: {', '.join(differing)}" if differing else 0)
    for path, content in files.items():
        safetensors_file.write_atomically(arguments.out / path, content)
    for name, run in runs.items():
        print(f"{name}: {run['tensors']} tensors, {run['parameters']} parameters")
        for fact in run["steps"]:
            print(
                f"  {fact['file']} {fact['bytes']} bytes, loss {fact['loss']:.4f}, scale {fact['gradient_scale']:g}, "
                f"norm {fact['total_norm']}, bad {fact['tensors_with_overflow']}"
            )
    print(f"{size} bytes in {len(files) - 1} files")


if __name__ == "__main__":
    main()
