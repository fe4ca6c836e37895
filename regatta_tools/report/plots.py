"""The figures of `regatta diagnose`, as SVG and PNG. matplotlib is an optional extra (`plots`).

Colours are those of Okabe and Ito (2008), which people with colour-blindness tell apart; every series has a mark of
its own besides. Each figure states its numbers and what its bars are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.tables.model import enum_values

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
FIGURES = ("v1-difficulty", "v2-profiles", "v3-agreement", "v4-ranges", "figure-2")


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of a result into ``folder`` (made where it is not there); returns the files, SVG and PNG of
    each.

    A figure of which no number is defined is left out. Raises :class:`EnvironmentProblem` where matplotlib is not
    installed or the folder cannot be written.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError as error:
        raise EnvironmentProblem(
            "plots need matplotlib, which is not installed", code="E301", mend="pip install 'regatta-tools[plots]'"
        ) from error
    import io

    import matplotlib.pyplot as plt

    from regatta_tools.files import replace_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise EnvironmentProblem(
            what, code="E304", place=str(folder), mend="choose another place with --plots"
        ) from error
    style = {
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
        "axes.titlelocation": "left", "svg.hashsalt": "regatta", "figure.dpi": 100, "legend.frameon": False,
    }  # fmt: skip
    written = []
    with matplotlib.rc_context(style):
        for name, make in zip(FIGURES, (_v1, _v2, _v3, _v4, _figure_2)):
            figure = make(result, plt)
            if figure is None:
                continue
            for ending, more in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
                out = io.BytesIO()
                figure.savefig(out, format=ending, bbox_inches="tight", **more)
                path = folder / f"{name}.{ending}"
                replace_file(path, out.getvalue())
                written.append(path)
            plt.close(figure)
    return written


def _look(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKS[index % len(MARKS)]}


def _bar(
    axis: Any, x: float, y: float, interval: Any, *, wide: Any = None, horizontal: bool = False, **look: Any
) -> None:
    """A point with its interval, and the wide interval as a thin line behind it."""
    colour, mark = look.pop("color"), look.pop("marker")
    for ends, width, alpha in ((wide, 1.0, 0.55), (interval, 2.6, 1.0)):
        if ends is None:
            continue
        along = (ends, [y, y]) if horizontal else ([x, x], ends)
        axis.plot(*along, color=colour, linewidth=width, alpha=alpha, solid_capstyle="butt", zorder=2)
    axis.plot([x], [y], linestyle="", marker=mark, color=colour, markersize=6, markeredgecolor="white",
              markeredgewidth=0.6, zorder=3, **look)  # fmt: skip


def _said(result: Mapping[str, Any], what: str) -> str:
    r = result["resampling"]
    if len(result["suites"]) == 1:
        return f"{what}\nNo intervals: one suite gives none"
    return f"{what}\nBars: {r['level']:.0%} intervals, {r['resamples']:,} resamples of suites"


def _note(figure: Any, text: str) -> None:
    figure.text(0.01, -0.01, text, ha="left", va="top", fontsize=7.5, color="#444444")


def _suites(result: Mapping[str, Any]) -> str:
    suites = result["suites"]
    n = len(suites)
    return f"{n} suite{'s' * (n != 1)} in {len({s['cell'] for s in suites})} cell(s)"


def _v1(result: Mapping[str, Any], plt: Any) -> Any:
    items = [i for i in result["V1"]["items"] if i["delta"] is not None]
    if not items:
        return None
    cells = list(result["V1"]["by_cell"])
    figure, axis = plt.subplots(figsize=(7, 0.75 * len(cells) + 1.6))
    for row, cell in enumerate(reversed(cells)):
        own = sorted(i["delta"] for i in items if i["cell"] == cell)
        # Equal values are stacked, so that every requirement is seen.
        heights: dict[float, int] = {}
        for value in own:
            place = round(value, 3)
            heights[place] = heights.get(place, 0) + 1
            lift = 0.055 * (heights[place] - 1)
            axis.plot(
                [value], [row - 0.12 + lift], "o", color=COLOURS[0], alpha=0.75, markersize=3.6, markeredgewidth=0
            )
        v = result["V1"]["by_cell"][cell]
        _bar(axis, v["mean"], row - 0.28, v["intervals"]["mean"], horizontal=True, color=COLOURS[1], marker="D",
             label="mean of the cell" if row == 0 else None)  # fmt: skip
    axis.plot([], [], "o", color=COLOURS[0], markersize=3.6, label="one requirement")
    for x in (0.25, 0.9):
        axis.axvline(x, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    axis.set_yticks(
        range(len(cells)), [f"{c}\n(n = {result['V1']['by_cell'][c]['requirements']})" for c in reversed(cells)]
    )
    axis.set_ylim(-0.6, len(cells) - 0.2)
    axis.set_xlim(-0.03, 1.03)
    axis.set_xlabel("share of suites that cover the requirement (generators weighted equally)")
    v = result["V1"]
    axis.set_title(f"V1  Difficulty of {len(items)} requirements: never covered {v['never']}, "
                   f"below 25 % {v['below_25']}, above 90 % {v['above_90']}", fontsize=9.5)  # fmt: skip
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04 - 0.42 / len(cells)), ncols=2, fontsize=8)
    _note(figure, _said(result, f"{_suites(result)}; n: requirements of a cell; dotted: 25 % and 90 %."))
    figure.tight_layout()
    return figure


def _v2(result: Mapping[str, Any], plt: Any) -> Any:
    profiles = {g: c for g, c in result["V2"].items() if any(r[s] is not None for r in c.values() for s in _STAGES)}
    if not profiles:
        return None
    classes = [c for c in enum_values("FaultClass") if any(c in p for p in profiles.values())]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), sharey=True)
    for axis, stage in zip(axes, _STAGES):
        for index, (generator, rows) in enumerate(profiles.items()):
            shift = (index - (len(profiles) - 1) / 2) * 0.2
            for x, name in enumerate(classes):
                row = rows.get(name)
                if row and row[stage] is not None:
                    _bar(axis, x + shift, row[stage], row[f"{stage}_interval"], **_look(index),
                         label=generator if not x else None)  # fmt: skip
        axis.set_xticks(range(len(classes)), [c.replace("-", "\n") for c in classes], fontsize=8)
        axis.set_xlim(-0.6, len(classes) - 0.4)
        axis.set_ylim(-0.03, 1.03)
        axis.set_title("as designed" if stage == "design" else "as run (execution)")
        axis.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
    axes[0].set_ylabel("detection rate")
    numbers = {r[f"{s}_n"] for p in profiles.values() for r in p.values() for s in _STAGES}
    n = f"{min(numbers)}" if len(numbers) == 1 else f"{min(numbers)} to {max(numbers)}"
    figure.suptitle("V2  Detection by fault class", x=0.01, ha="left", fontsize=10)
    handles, names = axes[0].get_legend_handles_labels()
    if len(profiles) > 1 or names != ["unstated"]:
        figure.legend(
            handles, names, title="generator", loc="upper right", ncols=len(names), fontsize=8, title_fontsize=8
        )
    _note(figure, _said(result, f"{_suites(result)}; n = {n} verdicts (suite and fault) a point."))
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    return figure


_STAGES = ("design", "execution")


def _v3(result: Mapping[str, Any], plt: Any) -> Any:
    held = {g: v for g, v in result["V3"].items() if v["alpha"] is not None}
    if not held:
        return None
    figure, axes = plt.subplots(1, 2, figsize=(9, 0.85 * len(held) + 1.9), sharey=True, width_ratios=(3, 2))
    for row, (generator, v) in enumerate(reversed(held.items())):
        look = _look(list(held).index(generator))
        wide = v["faults_too"]
        _bar(axes[0], v["alpha"], row, v["interval"], wide=wide["interval"], horizontal=True, **look)
        for value, mark, label in (
            (v["alpha_0"], "|", "pooled chance"),
            (v["per_fault"]["baseline"], "x", "per-fault baseline"),
        ):
            if value is not None:
                size = 11 if mark == "|" else 7
                axes[0].plot([value], [row], linestyle="", marker=mark, markersize=size, color="#000000",
                             markeredgewidth=1.6, label=label if row == 0 else None, zorder=4)  # fmt: skip
        p = v["per_fault"]
        if p["margin"] is None:
            axes[1].text(0.02, row, result["undefined"].get(f"V3.{generator}.per_fault", "undefined"), fontsize=7.5,
                         transform=axes[1].get_yaxis_transform(), va="center")  # fmt: skip
        else:
            wider = wide["per_fault_interval"]
            _bar(axes[1], p["margin"], row + 0.16, p["interval"], wide=wider, horizontal=True, **look)
        if p["margin_corrected"] is not None:
            axes[1].plot([p["margin_corrected"]], [row - 0.16], linestyle="", marker=look["marker"], markersize=6,
                         markerfacecolor="white", color=look["color"], zorder=3)  # fmt: skip
            if p["interval_corrected"]:
                axes[1].plot(p["interval_corrected"], [row - 0.16] * 2, color=look["color"], linewidth=2.6, zorder=2,
                             linestyle=(0, (1.5, 0.8)))  # fmt: skip
    axes[0].set_yticks(range(len(held)), [f"{g}\n(n = {held[g]['pairs']})" for g in reversed(held)])
    axes[0].set_ylim(-0.55, len(held) - 0.45)
    axes[0].set_xlabel("agreement of the two stages")
    axes[0].set_title("V3  Agreement and chance")
    axes[1].set_title("margin over the per-fault baseline")
    axes[1].axvline(0, color="#999999", linewidth=0.8, zorder=0)
    axes[1].set_xlabel("filled: as printed; open: corrected (jackknife)", fontsize=8)
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, -0.06 - 0.4 / len(held)), ncols=2, fontsize=8)
    _note(
        figure,
        _said(
            result, f"{_suites(result)}; n: pairs of a suite and a fault; thin lines resample the faults of a cell too."
        ),
    )
    figure.tight_layout()
    return figure


def _v4(result: Mapping[str, Any], plt: Any) -> Any:
    """Means by strategy for every measure; the distance between the outermost is rho."""
    generators = list(result["V4"])
    measures = ["RC", "FDR_d", "FDR_e", "AC", "ISS"]
    names = sorted({s for v in result["V4"].values() for m in measures for s in v[m]["strategies"]})
    if not any(x is not None for v in result["V4"].values() for m in measures for x in v[m]["strategies"].values()):
        return None
    figure, axes = plt.subplots(
        1, len(measures), figsize=(2.1 * len(measures), 0.8 * len(generators) + 2.0), sharey=True
    )
    for axis, measure in zip(axes, measures):
        for row, generator in enumerate(reversed(generators)):
            v = result["V4"][generator][measure]
            values = [x for x in v["strategies"].values() if x is not None]
            for index, name in enumerate(names):
                value = v["strategies"].get(name)
                if value is None:
                    continue
                at = row + (index - (len(names) - 1) / 2) * -0.16
                _bar(axis, value, at, v["intervals"].get(name), horizontal=True, **_look(index),
                     label=name if row == 0 else None)  # fmt: skip
            if v["rho"] is not None:
                axis.plot(
                    [min(values), max(values)], [row + 0.4] * 2, color="#444444", linewidth=1, marker="|", markersize=5
                )
                middle = ((min(values) + max(values)) / 2, row + 0.42)
                axis.annotate(f"{v['rho']:.2f}", middle, ha="center", va="bottom", fontsize=7, color="#444444")
        axis.set_title({"ISS": "ISS (1 to 5)"}.get(measure, measure))
        axis.margins(x=0.15)
        axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
    counts = {g: sum(s["generator"] == g for s in result["suites"]) for g in generators}
    axes[0].set_yticks(range(len(generators)), [f"{g}\n(n = {counts[g]})" for g in reversed(generators)])
    axes[0].set_ylim(-0.55, len(generators) - 0.25)
    figure.suptitle("V4  Means by strategy; above them rho, the range", x=0.01, ha="left", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), fontsize=8)
    _note(figure, _said(result, f"{_suites(result)}; n: suites of a generator, resampled within cell and strategy."))
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    return figure


def _figure_2(result: Mapping[str, Any], plt: Any) -> Any:
    held = {g: v for g, v in result["figure_2"].items() if any(r["delta"] is not None for r in v.values())}
    if not held:
        return None
    names = sorted({s for v in held.values() for s in v})
    figure, axis = plt.subplots(figsize=(max(4.5, 1.7 * len(names)), 3.8))
    for index, (generator, rows) in enumerate(held.items()):
        shift = (index - (len(held) - 1) / 2) * 0.22
        for x, name in enumerate(names):
            row = rows.get(name)
            if row and row["delta"] is not None:
                _bar(axis, x + shift, row["delta"], row["interval"], wide=row["faults_too"], **_look(index),
                     label=generator if x == 0 else None)  # fmt: skip
    axis.axhline(0, color="#666666", linewidth=0.9, zorder=1)
    axis.set_xticks(range(len(names)), names)
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.set_ylabel("Delta = FDR_d - FDR_e")
    axis.set_title("Figure 2  Stage divergence by strategy", pad=24 if len(held) > 1 else 6)
    if len(held) > 1:
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=len(held), fontsize=8, borderaxespad=0.1)
    sizes = {r["suites"] for v in held.values() for r in v.values()}
    n = f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
    _note(figure, _said(result, f"n = {n} suites a point; thin lines resample the faults of a cell too."))
    figure.tight_layout()
    return figure
