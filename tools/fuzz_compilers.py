#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles random CUDA kernels at different levels, runs them on the virtual GPU, and compares the results bit for bit.

  tools/fuzz_compilers.py --runner build/tests/programs/programs_run_ptx [--seed S] [--kernels N] [--nightly]

What differs between the levels is the code of one source, so that any difference is an error of a compiler or of the
virtual GPU (contraction is off, and the generator leaves out what C++ or CUDA leave open). A difference, a finding of
an observer or a refused module prints the seed and keeps the source and the PTX (exit 1). Exit 2 without nvcc (blocked).
"""
import argparse
import ctypes
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

GRID, BLOCK, OUTPUTS = 2, 64, 4
THREADS = GRID * BLOCK
FLAGS = ["-std=c++17", "-fmad=false", "-w"]
A100, H200 = "-arch=compute_80", "-arch=compute_90"
NVCC = {f"nvcc-O{level}": [A100, "-Xcicc", f"-O{level}"] for level in range(4)}
NVCC |= {"nvcc-G": [A100, "-G"], "nvcc-sm90": [H200]}
NVRTC = {"nvrtc": [A100], "nvrtc-G": [A100, "-G"], "nvrtc-sm90": [H200]}
NAMES = {"unsigned": "u", "unsigned long long": "w", "float": "f", "double": "d"}
U, W, F, D = NAMES
PRELUDE = """
__device__ __noinline__ unsigned mixed(unsigned a, unsigned long long b, float c) {
    if (a & 1) return a * 3 + (unsigned)(b >> 7);
    return __float_as_uint(c == c ? c : 0.5f) ^ (unsigned)b;
}
__device__ float tame(float x) { return x == x ? (x > 1e30f ? 1e30f : x < -1e30f ? -1e30f : x) : 0.5f; }
__device__ double tame(double x) { return x == x ? (x > 1e300 ? 1e300 : x < -1e300 ? -1e300 : x) : 0.5; }
"""


class Generator:
    """One kernel: `variables` of each type, changed by random statements and written out in the end."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.depth = 0
        self.loops = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def variable(self, kind):
        return f"{NAMES[kind]}{self.random.randrange(3)}"

    def constant(self, kind):
        if kind in (U, W):
            bits = 32 if kind == U else 64
            value = self.pick(self.random.getrandbits(bits), self.random.randrange(40), 2**bits - 1, 2 ** (bits - 1))
            return f"{value}{'u' if kind == U else 'ull'}"
        value = self.pick(0.0, -0.0, 1.0, -1.5, 0.1, 3e-39, 7e20, self.random.uniform(-100, 100))
        if kind == F:
            value = struct.unpack("f", struct.pack("f", value))[0]
        return f"({value.hex()}{'f' if kind == F else ''})"

    def expression(self, kind, depth=3):
        if depth == 0 or self.random.random() < 0.15:
            return self.variable(kind) if self.random.random() < 0.75 else self.constant(kind)
        a, b, c = (lambda: self.expression(kind, depth - 1) for _ in range(3))
        if kind in (U, W):
            return self.integer(kind, a, b, c, depth)
        return self.floating(kind, a, b, c, depth)

    def integer(self, kind, a, b, c, depth):
        signed = "int" if kind == U else "long long"
        bits = 32 if kind == U else 64
        suffix = "" if kind == U else "ll"
        forms = [
            lambda: f"({a()} {self.pick('+', '-', '*', '&', '|', '^')} {b()})",
            lambda: f"({a()} {self.pick('<<', '>>')} ({b()} & {bits - 1}))",
            lambda: f"({kind})(({signed}){a()} >> ({b()} & {bits - 1}))",
            lambda: f"({a()} {self.pick('/', '%')} ({b()} | 1))",
            lambda: f"({kind})(({signed}){a()} {self.pick('/', '%')} (({signed})({b()} & 0xffff) + 1))",
            lambda: f"({a()} * {b()} + {c()})",
            lambda: f"({self.condition(depth)} ? {a()} : {b()})",
            lambda: f"({kind}){self.pick('min', 'max')}(({signed}){a()}, ({signed}){b()})",
            lambda: f"{self.pick('min', 'max')}(({kind}){a()}, ({kind}){b()})",
            lambda: f"({kind})__popc{suffix}({a()})",
            lambda: f"({kind})__clz{suffix}({a()})",
            lambda: f"__brev{suffix}({a()})",
            lambda: f"(~{a()})",
        ]
        if kind == U:
            forms += [
                lambda: f"__umulhi({a()}, {b()})",
                lambda: f"(unsigned){self.expression(W, depth - 1)}",
                lambda: f"(unsigned)(unsigned char){a()}",
                lambda: f"(unsigned)(short){a()}",
                lambda: f"__float_as_uint(tame({self.expression(F, depth - 1)}))",
                lambda: f"__byte_perm({a()}, {b()}, {self.random.getrandbits(16) & 0x7777}u)",
                lambda: f"__funnelshift_l({a()}, {b()}, {c()})",
                lambda: f"mixed({a()}, {self.expression(W, depth - 1)}, {self.expression(F, depth - 1)})",
                lambda: f"local[{a()} & 3]",
            ]
        else:
            forms += [
                lambda: f"(unsigned long long){self.expression(U, depth - 1)}",
                lambda: f"__umul64hi({a()}, {b()})",
                lambda: f"(unsigned long long)__double_as_longlong(tame({self.expression(D, depth - 1)}))",
            ]
        return self.pick(*forms)()

    def floating(self, kind, a, b, c, depth):
        f = "f" if kind == F else ""
        forms = [
            lambda: f"({a()} {self.pick('+', '-', '*')} {b()})",
            lambda: f"({a()} / {b()})",
            lambda: f"(-{a()})",
            lambda: f"fabs{f}({a()})",
            lambda: f"sqrt{f}(fabs{f}(tame({a()})))",
            lambda: f"fma{f}({a()}, {b()}, {c()})",
            lambda: f"{self.pick('fmin', 'fmax')}{f}({a()}, {b()})",
            lambda: f"({self.condition(depth)} ? {a()} : {b()})",
            lambda: f"({kind}){self.expression(U, depth - 1)}",
            lambda: f"({kind})(int){self.expression(U, depth - 1)}",
            lambda: f"({kind}){self.expression(D if kind == F else F, depth - 1)}",
            # Of a variable: nvcc 13.0 folds ceil(7e20) to -2^63.
            lambda: f"{self.pick('rint', 'floor', 'ceil', 'trunc')}{f}({self.variable(kind)})",
        ]
        if kind == F:
            forms.append(lambda: f"__f{self.pick('add', 'mul')}_{self.pick('rn', 'rz', 'ru', 'rd')}({a()}, {b()})")
        return self.pick(*forms)()

    def condition(self, depth=2):
        kind = self.pick(U, U, W, F, D)
        a, b = (self.expression(kind, max(0, depth - 2)) for _ in range(2))
        if kind == U and self.random.random() < 0.5:
            a, b = f"(int){a}", f"(int){b}"
        return f"({a} {self.pick('<', '<=', '>', '>=', '==', '!=')} {b})"

    def emit(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def assign(self):
        kind = self.pick(U, U, W, F, F, D)
        value = self.expression(kind)
        self.emit(f"{self.variable(kind)} = {f'tame({value})' if kind in (F, D) else value};")

    def array(self):
        self.emit(f"local[{self.expression(U, 1)} & 3] = {self.expression(U, 2)};")

    def switch(self):
        self.emit(f"switch ({self.variable(U)} >> 29) {{")
        for case in range(self.random.randrange(3, 7)):
            self.emit(f"    case {case}:")
            self.block(1)
            if self.random.random() < 0.7:
                self.emit("        break;")
        self.emit("    default:")
        self.block(1)
        self.emit("}")

    def branch(self):
        self.emit(f"if {self.condition()} {{")
        self.block(self.random.randrange(1, 4))
        if self.random.random() < 0.5:
            self.emit("} else {")
            self.block(self.random.randrange(1, 3))
        self.emit("}")

    def loop(self):
        counter = f"i{self.loops}"
        self.loops += 1
        # Top bits: of low ones nvcc 13.0 gets a trip count wrong that is a quadratic polynomial of an outer counter.
        trips = self.pick(str(self.random.randrange(2, 6)), f"({self.variable(U)} >> {self.pick(29, 30)})")
        self.emit(f"for (unsigned {counter} = 0, end = {trips}; {counter} < end; ++{counter}) {{")
        self.block(self.random.randrange(1, 3))
        self.emit(f"    {self.variable(U)} += {counter};")
        if self.random.random() < 0.3:
            self.emit(f"    if {self.condition()} {self.pick('break', 'continue')};")
        self.emit("}")

    def block(self, count):
        self.depth += 1
        for _ in range(count):
            what = self.random.random()
            if what < 0.2 and self.depth < 3:
                self.branch()
            elif what < 0.3 and self.depth < 3:
                self.loop()
            elif what < 0.36 and self.depth < 3:
                self.switch()
            elif what < 0.46:
                self.array()
            else:
                self.assign()
        self.depth -= 1

    def exchange(self, shuffles):
        """All threads take part: only where control flow is uniform."""
        to, source = self.variable(U), self.variable(U)
        if shuffles and self.random.random() < 0.5:
            self.emit(self.pick(
                f"{to} ^= __shfl_xor_sync(0xffffffffu, {source}, {self.random.randrange(1, 32)});",
                f"{to} += __shfl_down_sync(0xffffffffu, {source}, {self.random.randrange(1, 32)});",
                f"{to} += __shfl_up_sync(0xffffffffu, {source}, {self.random.randrange(1, 32)}, {self.pick(8, 32)});",
                f"{to} ^= __shfl_sync(0xffffffffu, {source}, {self.variable(U)} & 31);",
                f"{to} += __ballot_sync(0xffffffffu, {self.condition()});",
                f"{to} += __any_sync(0xffffffffu, {self.condition()}) * 3;",
                f"{to} += __all_sync(0xffffffffu, {self.condition()});",
                f"{to} ^= __reduce_{self.pick('add', 'min', 'max', 'xor')}_sync(0xffffffffu, {source});",
                f"{to} ^= __match_any_sync(0xffffffffu, {source} & 7);"))
            return
        if self.random.random() < 0.3:
            self.atomics(to, source)
            return
        kind = self.pick(U, F, W)
        to, source = self.variable(kind), self.variable(kind)
        shared = f"shared_{NAMES[kind]}"
        self.emit(f"{shared}[threadIdx.x] = {source};")
        self.emit("__syncthreads();")
        self.emit(f"{to} = {shared}[(threadIdx.x * {self.pick(1, 3, 5)} + {self.random.randrange(BLOCK)}) % {BLOCK}];")
        self.emit("__syncthreads();")

    def atomics(self, to, source):
        """Of a kind whose sum does not depend on the order; nothing is read before all are done."""
        operation = self.pick("Add", "Xor", "Max", "Min", "Or", "And")
        self.emit(f"shared_u[threadIdx.x] = {self.constant(U)};")
        self.emit("__syncthreads();")
        self.emit(f"if {self.condition()} atomic{operation}(&shared_u[{self.variable(U)} % {BLOCK}], {source});")
        self.emit("__syncthreads();")
        self.emit(f"{to} = shared_u[(threadIdx.x + {self.random.randrange(BLOCK)}) % {BLOCK}];")
        self.emit("__syncthreads();")

    def kernel(self, name, shuffles):
        for n in range(3):
            self.emit(f"unsigned u{n} = in[(g * {2 * n + 1} + {n}) % {THREADS}];")
            self.emit(f"unsigned long long w{n} = (unsigned long long)u{n} * {self.random.getrandbits(40)}ull + g;")
            mask, factor = self.random.getrandbits(32), self.pick("1.0f", "0x1p-20f")
            self.emit(f"float f{n} = (float)(int)(u{n} ^ {mask}u) * {factor};")
            self.emit(f"double d{n} = (double)(long long)w{n} * {self.pick('1.0', '0x1p-40')};")
        self.emit("unsigned local[4] = {u0, u1, u2, g};")
        for _ in range(self.random.randrange(2, 4)):
            self.depth -= 1
            self.block(self.random.randrange(2, 6))
            self.depth += 1
            self.exchange(shuffles)
        body = "\n".join(self.lines)
        return f"""extern "C" __global__ void {name}(const unsigned* in, unsigned* out) {{
    __shared__ unsigned shared_u[{BLOCK}];
    __shared__ float shared_f[{BLOCK}];
    __shared__ unsigned long long shared_w[{BLOCK}];
    const unsigned g = blockIdx.x * {BLOCK} + threadIdx.x;
{body}
    shared_u[threadIdx.x] = 0, shared_f[threadIdx.x] = 0, shared_w[threadIdx.x] = 0;
    out[{OUTPUTS} * g] = u0 ^ u1 * 3 ^ u2 * 5;
    const unsigned long long w = w0 ^ w1 * 3 ^ w2 * 5;
    out[{OUTPUTS} * g + 1] = (unsigned)w ^ (unsigned)(w >> 32);
    out[{OUTPUTS} * g + 2] = __float_as_uint(tame(f0)) ^ __float_as_uint(tame(f1)) * 3 ^ __float_as_uint(tame(f2)) * 5;
    const unsigned long long d = (unsigned long long)__double_as_longlong(tame(d0)) ^
        (unsigned long long)__double_as_longlong(tame(d1)) * 3 ^ (unsigned long long)__double_as_longlong(tame(d2)) * 5;
    out[{OUTPUTS} * g + 3] = (unsigned)d ^ (unsigned)(d >> 32);
}}
"""


def find_nvcc():
    usual = "/usr/local/cuda/bin/nvcc"
    return shutil.which("nvcc") or (usual if os.path.exists(usual) else None)


def find_nvrtc():
    for name in ("libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def nvrtc_compile(library, source, flags):
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"fuzz.cu", 0, None, None)
    options = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
    status = library.nvrtcCompileProgram(program, len(flags), options)
    what = "PTX" if status == 0 else "ProgramLog"
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    if status != 0:
        sys.exit(f"NVRTC: {text.value.decode()}")
    return text.value.decode()


def compile_all(nvcc, source, folder):
    """The PTX files of one source, by compiler and level."""
    (folder / "fuzz.cu").write_text(source)
    jobs = []
    for name, flags in NVCC.items():
        out = folder / f"{name}.ptx"
        command = [nvcc, "-ptx", *FLAGS, *flags, str(folder / "fuzz.cu"), "-o", str(out)]
        jobs.append((out, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
    made = []
    library = find_nvrtc()
    for name, flags in NVRTC.items() if library else ():
        made.append(folder / f"{name}.ptx")
        made[-1].write_text(nvrtc_compile(library, source, FLAGS + flags))
    for out, job in jobs:
        output = job.communicate()[0]
        if job.returncode != 0:
            sys.exit(f"{' '.join(job.args)} failed:\n{output}")
        made.append(out)
    return made


def compare(lines, names, files):
    """Messages about one run: `lines` are those of the runner."""
    problems = []
    results = {}
    for line in lines:
        file, entry, verdict, rest = (line.split(" ", 3) + [""])[:4]
        if verdict == "ok":
            results[(file, entry)] = rest
        else:
            problems.append(f"{pathlib.Path(file).name}: {entry}: {verdict}: {rest}")
    for name in names:
        bits = {pathlib.Path(f).name: results[(str(f), name)] for f in files if (str(f), name) in results}
        for file, text in bits.items():
            first = next(iter(bits))
            if text != bits[first]:
                words = list(zip(text.split(), bits[first].split()))
                at = next(i for i, (a, b) in enumerate(words) if a != b)
                problems.append(f"{name}: word {at} is {words[at][0]} by {file} and {words[at][1]} by {first}")
    return problems, len(results)


def run_batch(options, nvcc, seed, count, folder):
    names = [f"kernel_{seed + i}" for i in range(count)]
    kernels = [Generator(seed + i).kernel(name, not options.no_shuffles) for i, name in enumerate(names)]
    files = compile_all(nvcc, PRELUDE + "\n".join(kernels), folder)
    numbers = random.Random(seed)
    (folder / "input.bin").write_bytes(struct.pack(f"<{THREADS}I", *(numbers.getrandbits(32) for _ in range(THREADS))))
    problems, ran = [], 0
    for schedule in (0, seed + 1):
        numbers_of_run = map(str, (GRID, BLOCK, THREADS * OUTPUTS, schedule))
        command = [options.runner, *numbers_of_run, str(folder / "input.bin"), ",".join(names), *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            problems.append(f"schedule {schedule}: the runner ended with {done.returncode}: {done.stderr.strip()}")
        found, results = compare(done.stdout.splitlines(), names, files)
        problems += [f"schedule {schedule}: {text}" for text in found]
        ran += results
    if not problems and ran != 2 * count * len(files):
        problems.append(f"{ran} results of {2 * count * len(files)}")
    return problems, ran, len(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", type=int, default=10)
    parser.add_argument("--batch", type=int, default=10, help="kernels in one module")
    parser.add_argument("--nightly", action="store_true", help="300 kernels")
    parser.add_argument("--no-shuffles", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/fuzz"), help="where failures are kept")
    options = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print("blocked: no nvcc")
        return 2
    total = 300 if options.nightly else options.kernels
    failed = ran = 0
    for seed in range(options.seed, options.seed + total, options.batch):
        count = min(options.batch, options.seed + total - seed)
        with tempfile.TemporaryDirectory() as name:
            problems, results, files = run_batch(options, nvcc, seed, count, pathlib.Path(name))
            ran += results
            if problems:
                failed += 1
                kept = options.keep / f"seed-{seed}"
                shutil.copytree(name, kept, dirs_exist_ok=True)
                print(f"seeds {seed} to {seed + count - 1}: {len(problems)} problems, kept in {kept}")
                print("\n".join(f"  {problem}" for problem in problems[:20]))
    print(f"seeds {options.seed} to {options.seed + total - 1}: {ran} results, {files} compilations of each kernel, "
          f"{failed} batches with problems")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
