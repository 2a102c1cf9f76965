# SPDX-License-Identifier: Apache-2.0
"""`gradguard step` against the oracle: every tensor of --out and every field of --json."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import random_groups as groups

from gradguard_oracle import safetensors_file
from gradguard_oracle.float32 import float32_from_text, same_bits
from gradguard_oracle.safetensors_file import StoredTensor
from gradguard_oracle.step import read_entries, read_files, run_files, write_entries
from gradguard_oracle.update import Options, coefficients, illegal_elements

RECORDED = Path(__file__).resolve().parents[2] / "property_tests" / "recorded"
RUNS = ["bf16_transformer", "f16_loss_scaling", "f32_digits"]
UNFUSED, FUSED = ("--fmad", "off"), ("--fmad", "on")
# Flag texts of options that differ from the defaults.
SETTINGS = {
    "defaults": {},
    "clipped": {"max-norm": "0.125", "weight-decay": "0.1", "learning-rate": "0x1.8p-7"},
    "unclipped_maximize": {"max-norm": "none", "maximize": True, "beta1": "0.8", "epsilon": "1e-3"},
    "amsgrad": {"amsgrad": True, "max-norm": "0.2", "beta2": "0.9", "guard-epsilon": "0.01"},
    "zero_norm": {"max-norm": "0", "weight-decay": "0.3", "learning-rate": "0.1"},
    "first_values_only": {"beta1": "0", "beta2": "0", "learning-rate": "0.5"},
}


def recorded(run):
    return sorted((RECORDED / run).glob("step_*.safetensors"))


def options_of(setting):
    fields = {}
    for flag, text in setting.items():
        name = flag.replace("-", "_")
        fields[name] = True if text is True else None if text == "none" else float32_from_text(text)
    return Options(**fields)


def flags_of(setting):
    return [part for flag, text in setting.items() for part in ([f"--{flag}"] if text is True else [f"--{flag}", text])]


def fp64(value):
    return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[value] if isinstance(value, str) else float(value)


def check_report(got, report, entries_after):
    """One element of the JSON's steps against a StepReport and the entries that the step leaves."""
    assert got["skip_reason"] == report.skip_reason
    assert got["update_launches"] == report.update_launches
    assert got["within_bounds"] is True
    assert np.float32(fp64(got["clip_multiplier"])) == report.clip
    stats = report.stats
    for field in ("all_finite", "elements", "tensors"):
        assert got[field] == (None if stats is None else getattr(stats, field)), field
    for field in ("reduction_launches", "readback_bytes", "scratch_bytes"):
        assert got[field] == (0 if stats is None else getattr(stats, field)), field
    if stats is None:
        fields = ("total_norm", "exact_norm", "max_finite_abs", "gradient_scale")
        assert [got[field] for field in fields] == [None] * len(fields)
    else:
        assert fp64(got["gradient_scale"]) == float(report.gradient_scale)
        assert fp64(got["total_norm"]) == stats.total_norm and fp64(got["exact_norm"]) == stats.exact_norm
        assert fp64(got["max_finite_abs"]) == float(stats.max_finite_abs)
    assert [entry["name"] for entry in got["entries"]] == [entry.name for entry in entries_after]
    for index, (entry, after) in enumerate(zip(got["entries"], entries_after, strict=True)):
        check_entry(entry, after, report, stats.summaries[index] if stats else None)


def check_entry(got, after, report, summary):
    assert got["step"] == (after.state.step if after.state else 0)
    if summary is not None:
        assert got["bad"] is summary.bad and got["first_bad"] == summary.first_bad
        assert fp64(got["norm"]) == (math.inf if summary.bad else math.sqrt(summary.square))
    updated = report.skip_reason is None and len(after.parameters) > 0
    for operand in ("param", "exp_avg", "exp_avg_sq"):
        # Its size is the program's to measure; where the result overflowed it may be infinite or NaN.
        assert not updated or not fp64(got["max_ulp"][operand]) < 0, operand


def check_out(path, entries):
    """--out holds the entries' parameters and states bit for bit, and nothing more of the kind."""
    tensors, metadata = safetensors_file.read(path)
    names = {f"{entry.name}.{operand}" for entry in entries for operand in entry.operands()}
    assert {name for name in tensors if not name.endswith(".grad")} == names
    for entry in entries:
        for operand, values in entry.operands().items():
            tensor = tensors[f"{entry.name}.{operand}"]
            assert tensor.dtype == "F32" and tensor.shape == entry.shape
            equal = same_bits(tensor.values(), values)
            assert equal.all(), f"{entry.name}.{operand}[{int(np.argmin(equal))}]"
        # Without a state there is no step to feed back: none, or 0, says so.
        step = metadata.get(f"{entry.name}.step", "0")
        assert step == (str(entry.state.step) if entry.state else "0")


def check_unfused(gradguard, paths, setting, extra=(), **oracle):
    """Runs without contraction and compares everything. -> Run"""
    options = options_of(setting)
    run = gradguard(paths, [*flags_of(setting), *UNFUSED, *extra])
    history = run_files(paths, options, **oracle)
    assert run.returncode == 0, run.stderr
    assert run.json["within_bounds"] is True and len(run.json["steps"]) == len(history)
    for got, (after, report) in zip(run.json["steps"], history, strict=True):
        check_report(got, report, after)
    check_out(run.out, history[-1][0])
    return run


def check_fused(gradguard, paths, setting):
    """With contraction: each step must be a legal step from the state that the program itself stored before it."""
    options = options_of(setting)
    plan = read_files(paths, options)
    before = plan.entries
    # The statistics do not depend on the parameters, so the oracle's reports hold whatever was contracted.
    for index, (_, report) in enumerate(run_files(paths, options)):
        run = gradguard(paths[: index + 1], [*flags_of(setting), *FUSED])
        assert run.returncode == 0 and run.json["within_bounds"] is True, run.stderr
        tensors, metadata = safetensors_file.read(run.out)
        grads = {f"{e.name}.grad": g for e, g in zip(before, plan.gradients[index], strict=True)}
        after = read_entries({**tensors, **grads}, metadata, options)
        check_report(run.json["steps"][index], report, after)
        for old, new, gradient in zip(before, after, plan.gradients[index], strict=True):
            check_legal(old, new, gradient, options, report)
        before = after


def check_legal(old, new, gradient, options, report):
    if report.skip_reason is not None or not len(old.parameters):
        assert (new.state is None) == (old.state is None)
        assert all(same_bits(a, old.operands()[name]).all() for name, a in new.operands().items())
        return
    step = old.state.step if old.state else 0
    assert new.state.step == step + 1
    c = coefficients(options, step, report.gradient_scale, report.clip)
    flags = illegal_elements(old.parameters, gradient, old.state, options, c, new.parameters, new.state)
    for operand, illegal in flags.items():
        assert not illegal.any(), f"{old.name}.{operand}[{int(np.argmax(illegal))}]"


# Recorded training runs


# The transformer's first file has moments and no maximum: AMSGrad is InvalidState there (see the refused options).
PAIRS = [(run, setting) for run in RUNS for setting in SETTINGS if (run, setting) != ("bf16_transformer", "amsgrad")]
PAIRS_OF_FUSED = [(run, setting) for run, setting in PAIRS if setting not in ("zero_norm", "first_values_only")]


@pytest.mark.parametrize("run, setting", PAIRS)
def test_recorded_runs_without_contraction(gradguard, run, setting):
    check_unfused(gradguard, recorded(run), SETTINGS[setting])


@pytest.mark.parametrize("run, setting", PAIRS_OF_FUSED)
def test_recorded_runs_with_contraction(gradguard, run, setting):
    check_fused(gradguard, recorded(run)[:5], SETTINGS[setting])


@pytest.mark.parametrize("run", RUNS)
def test_recorded_runs_end_where_the_training_did(gradguard, run):
    """The trainer's own parameters after the last step, known by their hash."""
    out = gradguard(recorded(run), UNFUSED).out
    tensors, _ = safetensors_file.read(out)
    names = sorted((n for n in tensors if n.endswith(".param")), key=lambda n: n[: -len(".param")].encode())
    content = b"".join(tensors[name].values().astype("<f4").tobytes() for name in names)
    facts = json.loads((RECORDED / "PROVENANCE.json").read_text())["runs"][run]
    assert hashlib.sha256(content).hexdigest() == facts["sha256_of_parameters_after_last_step"]


def test_overflow_step_is_skipped_and_located(gradguard):
    steps = gradguard(recorded("f16_loss_scaling"), UNFUSED).json["steps"]
    assert [step["skip_reason"] for step in steps] == [None, None, None, None, "NonFinite", None, None]
    assert steps[4]["total_norm"] == "inf" and steps[4]["clip_multiplier"] == 1
    assert [e["name"] for e in steps[4]["entries"] if e["bad"]] == ["output.bias", "output.weight"]


@pytest.mark.parametrize("seed", [1, 2, 12345])
def test_schedule_does_not_change_bits(gradguard, seed):
    check_unfused(gradguard, recorded("f32_digits")[:2], SETTINGS["clipped"], ("--schedule-seed", seed))


# Generated groups


def first_file(path, rng, shapes, make, scale=1.0, step=None, amsgrad=False, dtypes=("F32", "F16", "BF16")):
    """Writes entries e00, e01, ... whose gradients cycle through the dtypes; make(rng, dtype, shape) fills them."""
    entries, gradients = [], {}
    for index, shape in enumerate(shapes):
        name = f"e{index:02}"
        entries.append(groups.parameters(rng, name, shape, None if step is None else step + index, amsgrad))
        gradients[name] = make(rng, dtypes[index % len(dtypes)], shape)
    write_entries(path, entries, gradients, scale)
    return path


SHAPES = {
    "straddling": [(31,), (32,), (33,), (255,), (256,), (257,), (1023,), (1024,), (1025,), (4097,)],
    "empties": [(0,), (3,), (0, 5), (1,), (), (2, 1, 3), (0,)],
    "large": [(65537,), (300, 221), (131071,)],
}


@pytest.mark.parametrize("fill", [groups.ordinary, groups.edges])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("setting", ["defaults", "amsgrad", "unclipped_maximize"])
def test_generated_groups_without_contraction(gradguard, tmp_path, shapes, setting, fill):
    rng = np.random.default_rng(21)
    amsgrad = setting == "amsgrad"
    path = first_file(tmp_path / "g.safetensors", rng, SHAPES[shapes], fill, scale=4.0, step=3, amsgrad=amsgrad)
    check_unfused(gradguard, [path], SETTINGS[setting])


@pytest.mark.parametrize("fill", [groups.ordinary, groups.edges])
@pytest.mark.parametrize("setting", ["defaults", "amsgrad", "unclipped_maximize"])
def test_generated_groups_with_contraction(gradguard, tmp_path, setting, fill):
    rng = np.random.default_rng(22)
    amsgrad = setting == "amsgrad"
    path = first_file(tmp_path / "g.safetensors", rng, SHAPES["straddling"], fill, step=9, amsgrad=amsgrad)
    check_fused(gradguard, [path], SETTINGS[setting])


def test_golden_first_step_through_the_program(gradguard, tmp_path):
    rng = np.random.default_rng(0)
    path = first_file(tmp_path / "g.safetensors", rng, [(1,)], lambda *_: StoredTensor.from_float32([0.5], (1,)))
    tensors, metadata = safetensors_file.read(path)
    tensors["e00.param"] = StoredTensor.from_float32([1.0])
    safetensors_file.write(path, tensors, metadata)
    out, _ = safetensors_file.read(check_unfused(gradguard, [path], {}).out)
    bits = {name: int(out[f"e00.{name}"].bits[0]) for name in ("param", "exp_avg", "exp_avg_sq")}
    assert bits == {"param": 0x3F7FBE75, "exp_avg": 0x3D4CCCD0, "exp_avg_sq": 0x39831200}


def test_steps_repeats_the_last_gradients(gradguard, tmp_path):
    path = first_file(tmp_path / "g.safetensors", np.random.default_rng(23), SHAPES["empties"], groups.ordinary)
    check_unfused(gradguard, [path], SETTINGS["amsgrad"], ("--steps", 5), steps=5)


def test_gradient_scale_flag_overrides_every_file(gradguard):
    check_unfused(
        gradguard, recorded("f16_loss_scaling")[:3], {}, ("--gradient-scale", "0x1.8p17"), gradient_scale="0x1.8p17"
    )


def test_exact_moments_have_no_error(gradguard, tmp_path):
    def make(rng, dtype, shape):
        return StoredTensor.from_float32([0.5, -0.25, 2.0], shape)

    path = first_file(tmp_path / "g.safetensors", np.random.default_rng(24), [(3,)], make)
    run = check_unfused(gradguard, [path], {"beta1": "0.5", "beta2": "0.75", "max-norm": "none"})
    error = run.json["steps"][0]["entries"][0]["max_ulp"]
    assert fp64(error["exp_avg"]) == fp64(error["exp_avg_sq"]) == 0


@pytest.mark.parametrize("text", ["1.00000005960464477539062500001", "0x1.0000010000000000001p0"])
def test_option_text_is_rounded_once(gradguard, tmp_path, text):
    path = first_file(tmp_path / "g.safetensors", np.random.default_rng(25), [(300,)], groups.ordinary)
    check_unfused(gradguard, [path], {"learning-rate": text, "max-norm": text, "epsilon": text})


def test_output_can_be_fed_back(gradguard):
    paths = recorded("f32_digits")
    whole = check_unfused(gradguard, paths[:4], {})
    part = gradguard(paths[:2], UNFUSED).out
    tensors, metadata = safetensors_file.read(part)
    later, scale = safetensors_file.read(paths[2])
    resumed = part.with_name("resumed.safetensors")
    safetensors_file.write(resumed, {**tensors, **later}, {**metadata, **scale})
    second = gradguard([resumed, paths[3]], UNFUSED)
    assert second.returncode == 0, second.stderr
    expected, _ = safetensors_file.read(whole.out)
    got, _ = safetensors_file.read(second.out)
    assert {n: t.bits.tolist() for n, t in got.items()} == {n: t.bits.tolist() for n, t in expected.items()}


# Skips


def bad_group(path, value=np.nan, scale=1.0, step=4):
    """Three entries, the last element of the last one bad."""
    rng = np.random.default_rng(26)
    first_file(path, rng, [(5,), (1025,), (7,)], groups.ordinary, scale, step, dtypes=("F32",))
    tensors, metadata = safetensors_file.read(path)
    values = tensors["e02.grad"].values().copy()
    values[-1] = value
    tensors["e02.grad"] = StoredTensor.from_float32(values)
    safetensors_file.write(path, tensors, metadata)
    return path


@pytest.mark.parametrize("value, scale", [(np.nan, 1.0), (np.inf, 1.0), (-np.inf, 8.0), (3e38, 0.5)])
@pytest.mark.parametrize("setting", ["defaults", "unclipped_maximize", "zero_norm"])
def test_one_bad_element_skips_the_whole_group(gradguard, tmp_path, setting, value, scale):
    path = bad_group(tmp_path / "g.safetensors", value, scale)
    run = check_unfused(gradguard, [path], SETTINGS[setting])
    assert run.json["steps"][0]["skip_reason"] == "NonFinite"
    assert [e["first_bad"] for e in run.json["steps"][0]["entries"]] == [None, None, 6]


def test_nonfinite_error_policy_stops(gradguard, tmp_path):
    run = gradguard([bad_group(tmp_path / "g.safetensors")], ("--nonfinite", "error"))
    assert run.returncode == 3 and run.json["error"]["kind"] == "NonFiniteGradients" and not run.out.exists()


def test_skip_update_scans_nothing(gradguard):
    check_unfused(gradguard, recorded("f32_digits")[:2], {}, ("--skip-update",), skip_update=True)


def test_group_of_empty_entries_is_skipped(gradguard, tmp_path):
    path = first_file(tmp_path / "g.safetensors", np.random.default_rng(27), [(0,), (0, 3)], groups.ordinary)
    assert check_unfused(gradguard, [path], {}).json["steps"][0]["skip_reason"] == "Empty"


# Errors


@pytest.mark.parametrize(
    "flags, kind",
    [
        (["--max-norm", "1e300"], "InvalidOption"),
        (["--max-norm", "-1"], "InvalidOption"),
        (["--max-norm", "nan"], "InvalidOption"),
        (["--beta1", "1"], "InvalidOption"),
        (["--beta2", "-0.1"], "InvalidOption"),
        (["--epsilon", "0"], "InvalidOption"),
        (["--guard-epsilon", "1e-60"], "InvalidOption"),
        (["--learning-rate", "inf"], "InvalidOption"),
        (["--learning-rate", "1e30", "--weight-decay", "1e30"], "InvalidOption"),
        (["--gradient-scale", "0x1p-128"], "InvalidOption"),
        (["--gradient-scale", "0", "--skip-update"], "InvalidOption"),
        (["--amsgrad"], "InvalidState"),
    ],
)
def test_refused_options(gradguard, flags, kind):
    run = gradguard(recorded("bf16_transformer")[:1], flags)
    assert run.returncode == 2 and run.json["error"]["kind"] == kind and not run.out.exists()
    assert run.json["error"]["message"].count("\n") == 0


@pytest.mark.parametrize("flags", [["--max-norm", "-0"], ["--gradient-scale", "0x1p-127"], ["--weight-decay", "-0"]])
def test_accepted_edges_of_options(gradguard, flags):
    assert gradguard(recorded("f32_digits")[:1], flags).returncode == 0


@pytest.mark.parametrize("kind", ["InvalidState", "StepOverflow", "ShapeMismatch", "InvalidTensor"])
def test_refused_entries(gradguard, tmp_path, kind):
    path = first_file(tmp_path / "g.safetensors", np.random.default_rng(28), [(3,), (4,)], groups.ordinary, step=1)
    tensors, metadata = safetensors_file.read(path)
    if kind == "InvalidState":
        metadata["e01.step"] = "0"
    elif kind == "StepOverflow":
        metadata["e01.step"] = str(2**64 - 1)
    elif kind == "ShapeMismatch":
        tensors["e01.exp_avg_sq"] = StoredTensor.from_float32(np.zeros(4, np.float32), (2, 2))
    else:
        tensors["e01.param"] = StoredTensor("BF16", (4,), np.zeros(4, np.uint16))
    safetensors_file.write(path, tensors, metadata)
    run = gradguard([path])
    assert run.returncode == 2 and run.json["error"]["kind"] == kind
    assert "e01" in run.json["error"]["message"]


def test_greatest_step_is_accepted(gradguard, tmp_path):
    path = first_file(tmp_path / "g.safetensors", np.random.default_rng(29), [(3,)], groups.ordinary, step=2**64 - 2)
    check_unfused(gradguard, [path], {})


@pytest.mark.parametrize("cut", [0, 7, 8, 100, -1])
def test_truncated_files_are_one_clear_line(gradguard, tmp_path, cut):
    path = tmp_path / "cut.safetensors"
    path.write_bytes(recorded("f32_digits")[0].read_bytes()[:cut])
    run = gradguard([path])
    assert run.returncode == 2 and run.json["error"]["message"] and "\n" not in run.json["error"]["message"]


# The scan alone


@pytest.mark.parametrize("run", RUNS)
def test_stats_command(gradguard, run):
    paths = recorded(run)
    got = gradguard(paths, command="stats")
    assert got.returncode == 0, got.stderr
    for step, (_, report) in zip(got.json["steps"], run_files(paths, Options()), strict=True):
        assert (
            fp64(step["total_norm"]) == report.stats.total_norm and fp64(step["exact_norm"]) == report.stats.exact_norm
        )
        assert fp64(step["max_finite_abs"]) == float(report.stats.max_finite_abs)
        assert step["reduction_launches"] == report.stats.reduction_launches
        assert [e["bad"] for e in step["entries"]] == [s.bad for s in report.stats.summaries]
