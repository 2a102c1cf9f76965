# SPDX-License-Identifier: Apache-2.0
"""The report with PyTorch in it."""

import pytest

from gradguard_oracle import pytorch, report

if pytorch.why_not():
    pytest.skip(f"blocked: {pytorch.why_not()}", allow_module_level=True)


def test_every_key_of_every_variant_is_measured_and_inside(monkeypatch):
    monkeypatch.setattr(report, "DTYPES", ("BF16",))
    monkeypatch.setattr(report, "SIZES", [1, 700])
    monkeypatch.setattr(report, "EXPONENTS", [-8, 8])
    monkeypatch.setattr(report, "SHAPES", [(300,)])
    made = report.measure(seed=5, groups=1)
    assert made["outside"] == [] and made["without_pytorch"] is None and "torch" in made["versions"]
    for variant in pytorch.available_variants():
        rows = [r for r in made["updates"] if r["comparison"] == f"PyTorch, {variant}"]
        # 8 combinations: m, v, p always, the maximum in 4 of them, norm and clipped gradient in 4.
        assert len(rows) == 8 * 3 + 4 + 4 * 2
        assert all(0 < r["greatest_fraction"] <= 1 for r in rows)
    assert all("torch_error_u" in r for r in made["norms"])
