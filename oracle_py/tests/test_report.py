# SPDX-License-Identifier: Apache-2.0
"""The report of differences: a table, JSON and plots that say the same."""

import json

import pytest

from gradguard_oracle import plots, report


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """(report, folder) of a run without PyTorch over a few sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SIZES", [1, 300, 1500])
        patch.setattr(report, "EXPONENTS", range(-4, 5, 4))
        patch.setattr(report.pytorch, "why_not", lambda: "left out by this test")
        made = report.measure(seed=3, groups=1)
    folder = tmp_path_factory.mktemp("report")
    report.write(made, folder)
    return made, folder


def test_json_is_the_report(small):
    made, folder = small
    assert json.loads((folder / "report.json").read_text()) == made


def test_table_has_every_combination_and_says_what_is_missing(small):
    made, folder = small
    text = (folder / "report.txt").read_text()
    assert len(made["updates"]) == 8 * 3
    assert text.count("contract's lines in FP32") == 8 * 3
    assert "without PyTorch: left out by this test" in text


def test_nothing_lies_outside_its_enclosure(small):
    made, _ = small
    assert made["outside"] == []
    assert all(0 < r["greatest_fraction"] <= 1 for r in made["updates"])
    assert all(r["tree_error_u"] <= r["tree_bound_u"] and r["inside"] for r in made["norms"])


def test_plots_are_written_and_the_same_every_time(small, tmp_path):
    made, folder = small
    first, second = plots.draw(made, folder), plots.draw(made, tmp_path)
    assert [path.name for path in first] == [
        "error_against_n.png",
        "error_against_n.svg",
        "error_against_exponent.png",
        "error_against_exponent.svg",
    ]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 10_000


def test_a_result_outside_is_told(monkeypatch):
    monkeypatch.setattr(report, "EXPONENTS", [0])
    monkeypatch.setattr(report, "SIZES", [4])
    monkeypatch.setattr(report.pytorch, "why_not", lambda: "left out by this test")
    monkeypatch.setattr(report.norms, "tree_error", lambda values: 0.0)
    made = report.measure(seed=3, groups=1)
    assert made["outside"] and "outside its bound" in report.as_text(made)
