# SPDX-License-Identifier: Apache-2.0
"""check() holds named subjects and Python callables against the properties."""

import json

import numpy as np
import pytest

gradguard = pytest.importorskip("gradguard", reason="blocked: the Python package is not built")


def right(case):
    """The library itself, called from Python."""
    if case.operation == "statistics":
        return gradguard.gradient_stats([one.gradients for one in case.entries], case.control.gradient_scale)
    if case.operation == "unguarded_step":
        (one,) = case.entries
        return gradguard.adamw_step(one.parameters, one.gradients, one.state, case.options, case.control)
    return gradguard.guarded_adamw_step(case.entries, case.options, case.control, case.guard)


def parts(update):
    """An AdamWUpdate as a dict."""
    if not update.updated:
        return update
    state = update.state
    return {
        "parameters": update.parameters,
        "first_moment": state.first_moment,
        "second_moment": state.second_moment,
        "max_second_moment": state.max_second_moment,
    }


def changed(operand, change):
    """The library with one operand of every updated entry changed."""

    def subject(case):
        done = right(case)
        if case.operation != "guarded_step" or done.skip_reason is not None:
            return done
        entries = [parts(update) for update in done.entries]
        for one in entries:
            if isinstance(one, dict):
                with np.errstate(all="ignore"):
                    one[operand] = change(one[operand])
        return {"entries": entries, "report": done.report, "clip_multiplier": done.clip_multiplier}

    return subject


def test_the_library_on_the_virtual_gpu_keeps_every_property():
    result = gradguard.check("vgpu/fmad", cases=20)
    assert result.ok and not result.broken
    assert [one.name for one in result.properties] == list(gradguard.properties())
    assert all(one.status == "kept" and one.cases == 20 for one in result.properties)


def test_a_python_callable_keeps_every_property_with_all_abilities():
    result = gradguard.check(right, cases=20, abilities=gradguard.Abilities())
    assert result.subject == "right"
    assert [one.name for one in result.properties if one.status != "kept"] == []


def test_a_python_callable_claims_no_validation_unless_told():
    result = gradguard.check(right, cases=5, only="invalid_guarded_step")
    assert [one.status for one in result.properties] == ["not claimed"]
    assert not result.ok


def test_a_planted_fault_is_shown_with_the_smallest_case():
    wrong = changed("second_moment", lambda values: values * np.float32(1 + 2**-20))
    result = gradguard.check(wrong, cases=50, only=["guarded_step", "statistics"])
    broken, kept = result.properties
    assert (broken.status, kept.status) == ("broken", "kept")
    assert broken.elements == 1
    assert "second_moment" in broken.failures[0] and "legal set" in broken.violated()
    assert "second_moment: got 0x" in broken.smallest() and ", want 0x" in broken.smallest()
    assert "gradients" in broken.case
    text = str(result)
    assert "1 kept, 1 broken" in text and "smallest case: 1 element; second_moment" in text


@pytest.mark.parametrize("name", ["planted/no-unscale"])
def test_a_planted_fault_of_the_bench_is_found_by_its_name(name):
    assert name in gradguard.subjects()
    result = gradguard.check(name, cases=200, only="guarded_step")
    assert [one.status for one in result.properties] == ["broken"]


def test_a_clip_that_is_off_by_one_ulp_is_found():
    def subject(case):
        done = right(case)
        if case.operation != "guarded_step" or done.skip_reason is not None or done.clip_multiplier == 1.0:
            return done
        clip = float(np.nextafter(np.float32(done.clip_multiplier), np.float32(0)))
        return gradguard.GuardedAdamWUpdate(done.entries, done.report, clip, None)

    (found,) = gradguard.check(subject, cases=50, only="balanced_step").properties
    assert found.status == "broken" and "clip_multiplier" in found.smallest()


def test_a_subject_that_writes_to_its_inputs_is_found():
    def subject(case):
        done = right(case)
        for one in case.entries:
            one.gradients[...] = 0
        return done

    (found,) = gradguard.check(subject, cases=10, only="guarded_step").properties
    assert found.status == "broken" and "gradients" in found.failures[0]


def test_an_exception_breaks_a_property_and_names_itself():
    def subject(case):
        if any(one.gradients.size > 2 for one in case.entries):
            raise RuntimeError("no more than two")
        return right(case)

    (found,) = gradguard.check(subject, cases=50, only="guarded_step").properties
    assert found.status == "broken" and found.elements == 3
    assert "RuntimeError: no more than two" in found.failures[0]


@pytest.mark.parametrize(
    "outcome",
    [
        lambda case: None,
        lambda case: {"entries": [{"parameters": one.parameters} for one in case.entries]},
        lambda case: {"entries": [], "total_norm": 1.0},
        lambda case: gradguard.GuardedAdamWUpdate([gradguard.AdamWUpdate(np.float64([1]))] * len(case.entries)),
        lambda case: gradguard.GuardedAdamWUpdate([gradguard.AdamWUpdate(np.float32([1, 2]))] * len(case.entries)),
        lambda case: {"total_norm": 1.0},
    ],
)
def test_an_outcome_that_is_none_breaks_properties_and_nothing_else(outcome):
    result = gradguard.check(outcome, cases=10, abilities=gradguard.Abilities(validates=False), shrink=50)
    status = {one.name: one.status for one in result.properties}
    assert status["guarded_step"] == status["trajectory"] == "broken"


def test_cases_that_a_subject_does_not_take_are_not_asserted():
    def subject(case):
        return NotImplemented if case.options.amsgrad else right(case)

    (found,) = gradguard.check(subject, cases=50, only="guarded_step").properties
    assert found.status == "kept" and 0 < found.asserted < found.cases
    (none,) = gradguard.check(lambda case: NotImplemented, cases=5, only="guarded_step").properties
    assert none.status == "no case"


def test_a_subject_may_know_one_guard_epsilon():
    seen = set()

    def subject(case):
        seen.add(case.guard.epsilon)
        return right(case)

    gradguard.check(subject, cases=20, only="guarded_step", guard_epsilon=0.5)
    assert seen == {0.5}


def test_the_same_seed_draws_the_same_cases():
    def drawn(seed):
        seen = []

        def subject(case):
            gradients = [one.gradients.tobytes() for one in case.entries]
            seen.append((case.schedule_seed, case.options.learning_rate, gradients))
            return right(case)

        gradguard.check(subject, cases=10, seed=seed, only="guarded_step")
        return seen

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_elements_fixes_the_size_of_groups():
    sizes = set()

    def subject(case):
        sizes.add(sum(one.gradients.size for one in case.entries))
        return right(case)

    gradguard.check(subject, cases=5, only="guarded_step", elements=77)
    assert sizes == {77}


def test_a_trajectory_goes_on_from_what_the_subject_left():
    steps = []

    def subject(case):
        steps.append((case.step, [one.state.step if one.state else 0 for one in case.entries]))
        return right(case)

    assert gradguard.check(subject, cases=20, only="trajectory").ok
    assert max(step for step, _ in steps) >= 2
    assert any(len(counts) and max(counts) >= 2 for _, counts in steps)


def test_an_outcome_may_be_a_dict_with_a_norm_of_its_own():
    def subject(case):
        gradients = [one.gradients for one in case.entries]
        report = gradguard.reference.gradient_stats(gradients, case.control.gradient_scale)
        return {"total_norm": report.total_norm}

    claims = gradguard.Abilities(norm=gradguard.NormKind.WithinBound)
    assert gradguard.check(subject, cases=30, only="statistics", abilities=claims).ok


def test_a_result_is_plain_data_as_well():
    result = gradguard.check("oracle", cases=5, only="statistics")
    data = json.loads(json.dumps(result.to_dict()))
    assert data["ok"] and data["properties"][0]["name"] == "statistics" and data["subject"] == "oracle"


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="known are"):
        gradguard.check(right, only="no_such_property")
    with pytest.raises(ValueError, match="unknown subject"):
        gradguard.check("no such subject")
    with pytest.raises(TypeError, match="callable"):
        gradguard.check(3)


def test_ctrl_c_ends_a_check():
    import _thread

    def subject(case):
        _thread.interrupt_main()
        return right(case)

    with pytest.raises(KeyboardInterrupt):
        gradguard.check(subject, cases=10**6, only="guarded_step")
