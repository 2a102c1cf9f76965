# SPDX-License-Identifier: Apache-2.0
"""How fast kernels run without a GPU: sums of squares of blocks of 256 floats, by everything that is installed.

emulators.py GRADGUARD [PYTHON...]    the program, and interpreters that may have triton and torch, numba, or tinygrad

Prints elements/s: the median of five launches after one to warm up, all in one run. Compilation is not in the times.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

BLOCK = 256


def timed(launch, repeats=5):
    launch()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        launch()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def virtual_gpu(blocks):
    """Triton's PTX, launched through the driver API of `gradguard run`."""
    import ctypes

    import numpy as np
    sys.path.insert(0, str(Path(__file__).parent / "programs"))
    sys.argv = sys.argv[:1]
    import triton_kernels as kernels
    from driver import Array, Driver

    result = kernels.compiled("sum_of_squares")
    driver = Driver()
    function = driver.kernel(result.asm["ptx"], "sum_of_squares")
    x, out = Array(np.ones(blocks * BLOCK, np.float32)), Array(np.zeros(blocks, np.float32))
    arguments = [x, out, ctypes.c_int32(blocks * BLOCK), ctypes.c_uint64(0), ctypes.c_uint64(0)]
    elapsed = timed(lambda: driver.launch(function, blocks, 128, arguments, result.metadata.shared))
    assert np.all(out.get() == BLOCK)
    return blocks * BLOCK / elapsed


def triton_interpreter(blocks):
    import os
    os.environ["TRITON_INTERPRET"] = "1"
    import torch
    sys.path.insert(0, str(Path(__file__).parent / "programs"))
    from triton_kernels import sum_of_squares
    x, out = torch.ones(blocks * BLOCK), torch.zeros(blocks)
    elapsed = timed(lambda: sum_of_squares[(blocks,)](x, out, blocks * BLOCK, BLOCK=BLOCK))
    assert bool((out == BLOCK).all())
    return blocks * BLOCK / elapsed


def numba_simulator(blocks):
    import os
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    import numpy as np
    global cuda  # the simulator replaces it in the kernel's globals
    from numba import cuda

    @cuda.jit
    def sum_of_squares(x, out):
        part = cuda.shared.array(256, np.float32)
        lane = cuda.threadIdx.x
        value = x[cuda.grid(1)]
        part[lane] = value * value
        width = 128
        while width > 0:
            cuda.syncthreads()
            if lane < width:
                part[lane] += part[lane + width]
            width //= 2
        if lane == 0:
            out[cuda.blockIdx.x] = part[0]

    x, out = np.ones(blocks * BLOCK, np.float32), np.zeros(blocks, np.float32)
    elapsed = timed(lambda: sum_of_squares[blocks, BLOCK](x, out), 3)
    assert np.all(out == BLOCK)
    return blocks * BLOCK / elapsed


def tinygrad_python(blocks):
    import numpy as np
    from tinygrad import Tensor
    x = Tensor(np.ones((blocks, BLOCK), np.float32), device="PYTHON").realize()
    elapsed = timed(lambda: (x * x).sum(1).realize(), 3)
    return blocks * BLOCK / elapsed


RIVALS = {"triton_interpreter": 1024, "numba_simulator": 4, "tinygrad_python": 64}


def child(name, blocks):
    print(json.dumps(globals()[name](int(blocks))))


def measure(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        return None, (done.stderr.strip().splitlines() or ["no output"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def main(gradguard, *interpreters):
    rows = []
    for name, flags in (("gradguard run, no observers", ["--observe", "none"]), ("gradguard run, all observers", [])):
        for python in interpreters:
            speed, why = measure([gradguard, "run", "--virtual-gpu", *flags, "--", python, __file__, "child",
                                  "virtual_gpu", "4096"])
            if speed:
                rows.append((name, speed))
                break
        else:
            print(f"{name}: blocked: {why}")
    for name, blocks in RIVALS.items():
        for python in interpreters:
            speed, why = measure([python, __file__, "child", name, str(blocks)])
            if speed:
                rows.append((name, speed))
                break
        else:
            print(f"{name}: blocked: {why}")
    for name, speed in rows:
        print(f"{name:32} {speed / 1e6:12.4f} M elements/s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
