# SPDX-License-Identifier: Apache-2.0
"""The plots of report.py: error against n, and against the exponent of the gradients."""

import math

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "gradguard",
    "savefig.bbox": "tight",
}
# Okabe and Ito's colours, which people who confuse red and green tell apart too.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
KEYS = {
    "gradient": ("clipped gradient", SKY, "s"),
    "exp_avg": ("first moment m", BLUE, "o"),
    "exp_avg_sq": ("second moment v", GREEN, "^"),
    "max_exp_avg_sq": ("maximum of v", PURPLE, "v"),
    "param": ("parameter p", RED, "D"),
}


def draw(report, folder):
    """-> the paths written."""
    paths = []
    with pyplot.rc_context(STYLE):
        for name, figure in (
            ("error_against_n", against_n(report)),
            ("error_against_exponent", against_exponent(report)),
        ):
            for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                path = folder / f"{name}.{suffix}"
                figure.savefig(path, dpi=200, metadata=metadata)
                paths.append(path)
            pyplot.close(figure)
    return paths


def _powers_of_two(axis, values):
    axis.set_major_locator(FixedLocator(values))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"$2^{{{round(x).bit_length() - 1}}}$"))


def against_n(report):
    """One panel for each dtype: errors of the FP32 tree and of PyTorch's norm, and the bounds that hold for them."""
    dtypes = list(dict.fromkeys(r["dtype"] for r in report["norms"]))
    figure, panels = pyplot.subplots(1, len(dtypes), figsize=(10, 3.6), sharey=True, layout="constrained")
    least = 1e-3  # Errors below a thousandth of u are drawn here; on these inputs that is no error at all.
    for panel, dtype in zip(panels, dtypes, strict=True):
        rows = [r for r in report["norms"] if r["dtype"] == dtype]
        n = [r["n"] for r in rows]
        panel.plot(n, [r["any_order_bound_u"] for r in rows], "--", color="0.55", label="bound, any order (PyTorch)")
        panel.plot(
            n, [max(r["tree_bound_u"], least) for r in rows], "-", color=BLUE, alpha=0.5, label="bound along the tree"
        )
        panel.plot(
            n, [max(r["tree_error_u"], least) for r in rows], "o", color=BLUE, ms=4, label="contract's FP32 tree"
        )
        if all("torch_error_u" in r for r in rows):
            panel.plot(
                n,
                [max(r["torch_error_u"], least) for r in rows],
                "^",
                color=ORANGE,
                ms=4.5,
                label="PyTorch, clip_grad_norm_",
            )
        panel.set(xscale="log", yscale="log", xlabel="elements n", title=f"gradients in {dtype}")
        _powers_of_two(panel.xaxis, n[::2])
        panel.yaxis.set_major_formatter(
            FuncFormatter(lambda y, _: "exact" if y <= least else f"$10^{{{round(math.log10(y))}}}$")
        )
        panel.yaxis.set_minor_locator(NullLocator())
    panels[0].set_ylabel("relative error of the norm / $2^{-24}$")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def against_exponent(report):
    """Left in FP32 units, right as a fraction of what may differ at most."""
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 3.9), layout="constrained")
    exponents = [r["exponent"] for r in report["exponents"]]
    for key, (label, color, marker) in KEYS.items():
        rows = [r["keys"].get(key) for r in report["exponents"]]
        if not all(rows):
            continue
        style = {"color": color, "marker": marker, "ms": 4, "lw": 1}
        panels[0].plot(exponents, [r["greatest_ulp"] for r in rows], label=label, **style)
        panels[1].plot(exponents, [r["greatest_fraction"] for r in rows], label=label, **style)
    panels[0].set_yscale("symlog", base=2, linthresh=1)
    panels[0].yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: f"{y:g}" if y < 16 else f"$2^{{{int(y).bit_length() - 1}}}$")
    )
    panels[1].axhline(1, color="0.4", ls="--", lw=1)
    panels[1].annotate(
        "most that may differ", (exponents[0], 1), xytext=(0, -11), textcoords="offset points", color="0.35"
    )
    panels[1].set_ylim(0, 1.05)
    panels[0].set(
        xlabel="gradients of size $2^k$: k",
        ylabel="greatest difference / ulp",
        title="In FP32 units (cancellation makes many of them)",
    )
    panels[1].set(
        xlabel="gradients of size $2^k$: k",
        ylabel="greatest difference / width of the enclosure",
        title="As a fraction of the enclosure",
    )
    other = "the middle of its enclosure" if report["without_pytorch"] else "PyTorch's AdamW"
    figure.suptitle(f"The contract's step against {other}, AMSGrad, clipped, old moments of size 1", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure
