# SPDX-License-Identifier: Apache-2.0
"""Holds a subject against every property of the bench, and says which it keeps."""

import tempfile
from dataclasses import dataclass, field

from . import _core
from ._outcome import normalised

KEPT, BROKEN, NOT_CLAIMED, NOT_MET = "kept", "broken", "not claimed", "no case"


@dataclass(frozen=True)
class PropertyResult:
    """One property on a subject.

    status: "kept"; "broken"; "not claimed" (the subject's abilities do not offer what it asserts); "no case" (the
    subject took none of the cases). cases: drawn. asserted: those that something was asserted of. worst_ulp,
    worst_fraction_of_bound: greatest error seen. When broken: failures (texts), case (the smallest failing case, on
    one screen), case_json (the same, for `gradguard replay`), elements and nonzero_gradients of it.
    """

    name: str
    fact: str
    status: str
    cases: int
    asserted: int
    worst_ulp: float
    worst_fraction_of_bound: float
    failures: list = field(default_factory=list)
    case: str = ""
    case_json: str = ""
    elements: int = 0
    nonzero_gradients: int = 0

    def violated(self):
        """The fact that does not hold in the smallest failing case."""
        return self.failures[0].splitlines()[0].removeprefix("FAILED: ") if self.failures else ""

    def smallest(self):
        """The smallest failing case in one line: how large it is, what came and what was wanted."""
        if not self.failures:
            return ""
        members = {}
        for line in self.failures[0].splitlines()[1:]:
            name, _, value = line.strip().partition(" ")
            members.setdefault(name, value.strip())
        size = f"{self.elements} element{'' if self.elements == 1 else 's'}"
        values = ", ".join(f"{name} {members[name]}" for name in ("got", "want", "apart") if name in members)
        return f"{size}; {members.get('operand', 'result')}: {values}"

    def __str__(self):
        """All failures of the smallest case, and the case."""
        head = f"{self.name}: {self.status} ({self.asserted} cases)\n"
        return head + "".join(self.failures) + self.case


@dataclass(frozen=True)
class CheckResult:
    """What a check found; prints as a table."""

    subject: str
    seed: int
    properties: list

    @property
    def ok(self):
        """Whether nothing is broken and something was asserted."""
        return not self.broken and any(result.status == KEPT for result in self.properties)

    @property
    def broken(self):
        return [result for result in self.properties if result.status == BROKEN]

    @property
    def kept(self):
        return [result for result in self.properties if result.status == KEPT]

    def to_dict(self):
        """Everything, as JSON has it."""
        return {
            "subject": self.subject,
            "seed": self.seed,
            "ok": self.ok,
            "properties": [vars(result).copy() for result in self.properties],
        }

    def __str__(self):
        rows = [("property", "cases", "", "worst ulp")]
        for result in self.properties:
            ulp = f"{result.worst_ulp:.3g}" if result.worst_ulp else "-"
            rows.append((result.name, str(result.asserted), result.status, ulp))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [f"check of {self.subject}, seed {self.seed}", ""]
        for (name, cases, status, ulp), result in zip(rows, [None, *self.properties], strict=True):
            row = f"{name:<{widths[0]}}  {cases:>{widths[1]}}  {status:<{widths[2]}}  {ulp:>{widths[3]}}"
            lines.append(row.rstrip())
            if result is not None and result.status == BROKEN:
                lines += [f"    not so: {result.violated()}", f"    smallest case: {result.smallest()}"]
        lines += ["", f"{len(self.kept)} kept, {len(self.broken)} broken"]
        return "\n".join(lines)


def properties():
    """{name: fact} of every property, in the order they are looked at."""
    return dict(_core.properties())


def subjects():
    """{name: description} of this package's subjects: the library on the virtual GPU, the oracle, planted faults."""
    return dict(_core.subjects())


def _callable_abilities(subject):
    declared = getattr(subject, "abilities", None)
    if declared is not None:
        return declared
    return _core.Abilities(validates=False)


def check(
    subject,
    cases=200,
    seed=0,
    only=None,
    elements=None,
    abilities=None,
    guard_epsilon=None,
    shrink=2000,
    name=None,
    progress=None,
):
    """Draws cases, holds every property against a subject, and shrinks what fails to the smallest case.

    Args:
        subject: the name of one that this package brings ("vgpu/fmad", see subjects()), or a callable that takes a
            Case and returns what it did: a GuardedAdamWUpdate, AdamWUpdate or GradientStatsReport; or a dict with
            entries (for each one parameters, first_moment, second_moment and, with AMSGrad, max_second_moment; float32
            of the parameter's shape), total_norm, clip_multiplier, skipped. It may raise the contract's errors, and
            return NotImplemented for a case that it does not take; any other exception breaks the property. It must
            not write to the case's arrays, and must be a function of the case alone.
        cases: drawn for each property; the run of a property ends at its first failure.
        seed: draws other cases.
        only: names of properties; None for all.
        elements: groups of exactly so many elements.
        abilities: what the subject claims; None: its attribute `abilities`, else everything but validation. Properties
            that ask for more are not run; the judge admits what is declared and nothing else.
        guard_epsilon: the one guard epsilon that the subject knows, where that is not an option of it; None: its
            attribute `guard_epsilon`, else none.
        shrink: cases that shrinking may run, for each failure.
        name: of a callable, for the report; None: its attribute `name`, or its own name.
        progress: called with the name of each property before it is looked at.

    Returns:
        A CheckResult, which prints as a table.

    Raises:
        ValueError for unknown names, TypeError for what is no subject.
    """
    if isinstance(subject, str):
        if abilities is not None or guard_epsilon is not None:
            raise ValueError("abilities, guard_epsilon: a subject of this package has its own")
        step, name, claimed = None, subject, _core.abilities_of(subject)
    elif callable(subject):
        name = name or getattr(subject, "name", None) or getattr(subject, "__name__", type(subject).__name__)
        claimed = _callable_abilities(subject) if abilities is None else abilities
        guard_epsilon = getattr(subject, "guard_epsilon", None) if guard_epsilon is None else guard_epsilon

        def step(case):
            return normalised(case, subject(case))
    else:
        raise TypeError(f"subject: want a name or a callable, got {type(subject).__name__}")
    facts = properties()
    chosen = list(facts) if only is None else [only] if isinstance(only, str) else list(only)
    results = []
    with tempfile.TemporaryDirectory(prefix="gradguard-check-") as folder:
        for chosen_name in chosen:
            if progress is not None:
                progress(chosen_name)
            found = _core.check_property(
                step, name, claimed, chosen_name, seed, cases, elements, guard_epsilon, shrink, folder
            )
            results.append(_result(chosen_name, facts[chosen_name], found))
    return CheckResult(name, seed, results)


def _result(name, fact, found):
    failure = found["failure"]
    if failure is not None:
        status = BROKEN
    elif not found["applies"]:
        status = NOT_CLAIMED
    else:
        status = KEPT if found["asserted"] else NOT_MET
    return PropertyResult(
        name,
        fact,
        status,
        found["cases"],
        found["asserted"],
        found["worst_ulp"],
        found["worst_fraction_of_bound"],
        **(failure or {}),
    )
