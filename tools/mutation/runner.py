# SPDX-License-Identifier: Apache-2.0
"""Runs mutants in worker processes, keeps each result in the state folder, and goes on from there.

State folder of one target: results/KEY.json (one for each mutant, see engine.py), shared/ (what Target.set_up makes),
workers/N (removed when a run ends, and at the start of the next one should a run have been killed), lock.
"""
import dataclasses
import fcntl
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shutil
import signal
import sys
import time
import traceback

from . import execute
from .engine import Identical, Invalid, MutationError, Verdict, file_digest, key_of


def write_atomically(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def cpu_seconds():
    return execute.children_seconds() + time.process_time()


def judge(target, mutant, folder, is_new):
    """Builds and runs one mutant in a worker. `is_new(fingerprint)`: "" if no other mutant compiles to the same text,
    else that one's id."""
    before = cpu_seconds()
    try:
        fingerprint = target.build(mutant, folder)
        twin = is_new(fingerprint)
        verdict = Verdict("identical", detail=f"compiles to the same as {twin}") if twin else target.run(mutant, folder)
        verdict.fingerprint = fingerprint
    except Invalid as error:
        verdict = Verdict("invalid", detail=str(error))
    except Identical:
        verdict = Verdict("identical", detail="compiles to the same as the unmutated sources")
    verdict.seconds = round(cpu_seconds() - before, 3)
    return verdict


def work(target, mutants, folder, channel):
    """A worker: takes orders from the channel until it is told None."""
    execute.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides

    def stop(*_):
        execute.kill_running()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)

    def is_new(fingerprint):
        channel.send(("built", fingerprint))
        return channel.recv()

    try:
        folder.mkdir(parents=True)
        target.prepare(folder)
        while (order := channel.recv()) is not None:
            if order == "check":
                before = cpu_seconds()
                target.check_unmutated(folder)
                channel.send(("checked", cpu_seconds() - before))
            else:
                channel.send(("judged", judge(target, mutants[order], folder, is_new)))
    except MutationError as error:
        channel.send(("error", str(error)))
    except Exception:
        channel.send(("error", traceback.format_exc()))
    shutil.rmtree(folder, ignore_errors=True)


class Results:
    """The results that are kept in a folder, and which of them still hold."""

    def __init__(self, folder, battery):
        self.folder, self.battery = folder, battery
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob("*.part"):
            part.unlink()

    def load(self, key):
        """The verdict kept under the key, or None."""
        path = self.folder / f"{key}.json"
        if not path.is_file():
            return None
        kept = json.loads(path.read_text())
        rests_on = kept.pop("rests_on")
        if kept["status"] == "killed":
            part = kept["part"]
            if rests_on.get(part) != self.battery.get(part):
                return None
        elif kept["status"] == "survived" and rests_on != self.battery:
            return None
        return Verdict(**kept)

    def keep(self, key, mutant, verdict):
        if verdict.status == "killed" and verdict.part not in self.battery:
            raise MutationError(f"{mutant.id} was killed by {verdict.part!r}, which is no part of the battery")
        text = json.dumps({**dataclasses.asdict(verdict), "rests_on": self.battery}, indent=1)
        write_atomically(self.folder / f"{key}.json", text + "\n")

    def clear(self):
        for path in self.folder.glob("*.json"):
            path.unlink()


class Run:
    """One run of a target. After finish(), `verdicts` holds one for each mutant's id that has one."""

    def __init__(self, root, target, state, jobs, say=print):
        self.target, self.jobs, self.say = target, jobs, say
        self.root = pathlib.Path(root)
        self.folder = pathlib.Path(state) / target.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.verdicts, self.rerun, self.interrupted = {}, 0, False
        self.fingerprints = {}
        self._lock = open(self.folder / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise MutationError(f"another run uses {self.folder}") from None
        shutil.rmtree(self.folder / "workers", ignore_errors=True)
        (self.folder / "shared").mkdir(exist_ok=True)
        target.set_up(self.folder / "shared", jobs)
        self.mutants = target.mutants()
        ids = [mutant.id for mutant in self.mutants]
        if len(set(ids)) != len(ids):
            raise MutationError(f"two mutants are called {next(i for i in ids if ids.count(i) > 1)}")
        self.keys, self._digests = {}, {}
        for mutant in self.mutants:
            concerned = {}
            for name in target.concerns(mutant):
                concerned[name] = self._digests.setdefault(name, file_digest(self.root, name))
            self.keys[mutant.id] = key_of(mutant, concerned)
        self.results = Results(self.folder / "results", target.battery())

    def changed(self):
        """What is not any more as it was when the run began: its results are about something else."""
        changed = [name for name, digest in self._digests.items() if file_digest(self.root, name) != digest]
        now = self.target.battery()
        return changed + [part for part, digest in self.results.battery.items() if now.get(part) != digest]

    def close(self):
        self._lock.close()

    def finish(self, chosen=None, fresh=False):
        """Judges those mutants whose ids are in `chosen` (None: all) and have no result that holds."""
        if fresh:
            self.results.clear()
        chosen = [m for m in self.mutants if chosen is None or m.id in chosen]
        self._recall()
        todo = [i for i, m in enumerate(self.mutants) if m.id in {c.id for c in chosen} and m.id not in self.verdicts]
        self.say(f"{self.target.name}: {len(self.mutants)} mutants, {len(chosen)} chosen, "
                 f"{len(chosen) - len(todo)} have a result that holds")
        if todo:
            self._work_through(todo)

    def _recall(self):
        kept = {mutant.id: self.results.load(self.keys[mutant.id]) for mutant in self.mutants}
        for name, verdict in kept.items():
            if verdict and verdict.status != "identical":
                self.verdicts[name] = verdict
                if verdict.fingerprint:
                    self.fingerprints[verdict.fingerprint] = name
        for name, verdict in kept.items():  # what is the same as another holds as long as that one does
            if verdict and verdict.status == "identical" and (verdict.fingerprint or None) in {None, *self.fingerprints}:
                self.verdicts[name] = verdict

    def _work_through(self, todo):
        context = multiprocessing.get_context("fork")
        workers = {}
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            for number in range(min(self.jobs, len(todo))):
                ours, theirs = context.Pipe()
                folder = self.folder / "workers" / str(number)
                process = context.Process(target=work, args=(self.target, self.mutants, folder, theirs))
                process.start()
                theirs.close()
                workers[ours] = process
            self._direct(workers, todo)
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            signal.signal(signal.SIGTERM, previous)
            for process in workers.values():
                while process.is_alive():  # again and again: Python may lose a signal just before it blocks in a read
                    process.terminate()
                    process.join(0.2)
            shutil.rmtree(self.folder / "workers", ignore_errors=True)

    def _direct(self, workers, todo):
        first = next(iter(workers))
        first.send("check")
        self._expect(first, workers[first], "checked")
        waiting, busy, started = list(reversed(todo)), {}, time.monotonic()
        for channel in workers:
            if waiting:
                busy[channel] = waiting.pop()
                channel.send(busy[channel])
        while busy:
            for channel in multiprocessing.connection.wait(list(busy)):
                mutant = self.mutants[busy[channel]]
                kind, value = self._receive(channel, workers[channel], mutant.id)
                if kind == "built":
                    twin = self.fingerprints.setdefault(value, mutant.id)
                    channel.send("" if twin == mutant.id else twin)
                    continue
                self._take(mutant, value)
                self._progress(len(todo), started)
                if waiting:
                    busy[channel] = waiting.pop()
                    channel.send(busy[channel])
                else:
                    del busy[channel]
        for channel, process in workers.items():
            channel.send(None)
            process.join()

    def _expect(self, channel, process, wanted):
        kind, seconds = self._receive(channel, process, "the unmutated sources")
        if kind != wanted:
            raise MutationError(f"want {wanted} from a worker, got {kind}")
        self.say(f"{self.target.name}: the unmutated sources pass the battery in {seconds:.1f} CPU seconds")

    @staticmethod
    def _receive(channel, process, what):
        try:
            kind, value = channel.recv()
        except EOFError:
            process.join()
            raise MutationError(f"{what}: a worker ended with status {process.exitcode}") from None
        if kind == "error":
            raise MutationError(f"{what}: {value}")
        return kind, value

    def _take(self, mutant, verdict):
        self.results.keep(self.keys[mutant.id], mutant, verdict)
        self.verdicts[mutant.id] = verdict
        self.rerun += 1
        if verdict.status == "survived":
            self.say(f"\nsurvived: {mutant.id}: {mutant.description}")

    def _progress(self, of, started):
        if not sys.stdout.isatty() and self.rerun % 20 != 0 and self.rerun != of:
            return
        counts = {}
        for verdict in self.verdicts.values():
            counts[verdict.status] = counts.get(verdict.status, 0) + 1
        left = (time.monotonic() - started) / self.rerun * (of - self.rerun)
        line = f"{self.rerun}/{of}: " + ", ".join(f"{n} {s}" for s, n in sorted(counts.items())) + f"; {left:.0f} s left"
        print(f"\r\033[K{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)
