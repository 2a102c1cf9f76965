# SPDX-License-Identifier: Apache-2.0
"""From the command line to the exit status."""
import argparse
import datetime
import os
import pathlib
import shutil
import sys
import tarfile

from gpu_session import ROOT, pack, record, stages

EXIT = {"passed": 0, "failed": 1, "blocked": 2}
EXIT_USAGE = 64

ABOUT = """Runs the hardware suite, the comparison with the virtual GPU, compute-sanitizer and the benchmark beside
PyTorch on the GPU of this machine, each stage within its own time, all of them within six minutes, and leaves
session.json and session.txt, renewed after each stage. Nothing is installed, nothing is built.

On a machine to be hired:
  tools/gpu_session.sh --pack session.tar                    here, with a build in build/
  tar xf session.tar && gradguard-session/tools/gpu_session.sh       there

Exit status: 0 all passed; 1 a stage failed or ran out of time; 2 none failed, but one could not run (blocked); 64 bad
usage."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"gpu_session.sh: {message}", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def options_of(arguments):
    parser = Parser("gpu_session.sh", description=ABOUT, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "vdriver"), default="cuda",
                        help="vdriver: a rehearsal of the script on the virtual driver, with tiny sizes [cuda]")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="a build of GRADGUARD_BENCH [build]")
    parser.add_argument("--out", type=pathlib.Path, help="a folder that does not exist yet [gpu-session-<time>]")
    parser.add_argument("--python", help="the Python that has PyTorch [.venv's, else python3]")
    parser.add_argument("--stages", help=f"some of them, with commas between: {','.join(stages.NAMES)} [all]")
    parser.add_argument("--seconds", type=float, default=355.0, help="for all stages together [355]")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FILE.tar", help="packs build and script, and runs nothing")
    options = parser.parse_args(arguments)
    options.build = options.build.resolve()
    options.stages = options.stages.split(",") if options.stages else list(stages.NAMES)
    for name in options.stages:
        if name not in stages.NAMES:
            parser.error(f"--stages: no stage is called '{name}'; want {', '.join(stages.NAMES)}")
    if not 0 < options.seconds < float("inf"):
        parser.error(f"--seconds: want a finite time above 0, got {options.seconds}")
    if options.out is None:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        options.out = pathlib.Path(f"gpu-session-{stamp}-{os.getpid()}")
    options.out = options.out.absolute()
    if options.pack is None and os.path.lexists(options.out):
        parser.error(f"--out: {options.out} is there already")
    if options.python is None:
        venv = ROOT / ".venv/bin/python"
        options.python = str(venv) if venv.exists() else shutil.which("python3") or sys.executable
    return options


def main(arguments):
    options = options_of(arguments)
    try:
        if options.pack is not None:
            print(pack.pack(options.build, options.pack))
            return 0
        return EXIT[record.run(options, stages.stages_of(options))]
    except (OSError, tarfile.TarError, pack.Incomplete) as error:
        print(f"gpu_session.sh: {error}", file=sys.stderr)
        return 1


sys.exit(main(sys.argv[1:]))
