# SPDX-License-Identifier: Apache-2.0
"""Trains the network of network.py with tinygrad. Prints the losses as JSON.

tinygrad_network.py DEVICE sgd|adamw [jit]
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from network import RATE, STEPS, data  # noqa: E402
from tinygrad import Tensor, TinyJit  # noqa: E402
from tinygrad.helpers import Context  # noqa: E402
from tinygrad.nn.optim import SGD, AdamW  # noqa: E402


def main(device, optimizer, *jit):
    x, y, w1, w2 = (Tensor(array, device=device) for array in data())
    for weight in (w1, w2):
        weight.requires_grad = True
    update = SGD([w1, w2], lr=RATE) if optimizer == "sgd" else AdamW([w1, w2], lr=0.01)

    def step():
        update.zero_grad()
        loss = (x @ w1).relu().matmul(w2).sparse_categorical_crossentropy(y)
        loss.backward()
        loss.realize()  # before the weights change under it
        update.step()
        return loss

    if jit:
        step = TinyJit(step)
    with Context(TRAINING=1):
        print(json.dumps([step().item() for _ in range(STEPS)]))


main(*sys.argv[1:])
