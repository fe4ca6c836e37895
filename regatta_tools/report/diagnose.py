"""The diagnostics for people (text), for spreadsheets (CSV), and the page on reproduction."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regatta_tools.report.wrapping import wrap

#: So many requirements of the hard tail are named in the text.
MOST_OF_TAIL = 12


def as_text(result: Mapping[str, Any], rows: Sequence[Any] | None = None, outside: Sequence[Any] = ()) -> str:
    """A result of :func:`regatta_tools.diagnose` for a terminal; ``rows`` are published figures beside ours."""
    lines: list[str] = []
    suites = result["suites"]
    what = [
        f"{len(suites)} suite{'s' * (len(suites) != 1)}",
        _several("cell", {s["cell"] for s in suites}),
        _several("generator", {s["generator"] for s in suites}),
        _several("strategy", {s["strategy"] for s in suites}, "strategies"),
    ]
    verdicts = sum(n for by in result["missing"]["outcomes"].values() for k, n in by.items() if k != "skipped")
    lines += wrap(f"{', '.join(what)}: {verdicts:,} verdicts ({result['source']})", "", "  ")
    r = result["resampling"]
    lines += wrap(
        f"In brackets: {r['level']:.0%} intervals from {r['resamples']:,} resamples of suites, seed {r['seed']}; "
        "in braces: the same with the faults of each cell resampled too. Where there are none, none can be given, and "
        "--format json says why.",
        "", "  ",
    )  # fmt: skip
    if rows is not None:
        lines += ["", *_published(rows, outside)]
    lines += ["", *_v1(result), "", *_v2(result), "", *_v3(result), "", *_v4(result), "", *_figure(result)]
    lines += ["", *_missing(result)]
    lines += ["", "What these numbers support, and what they do not"]
    for note in result["notes"]:
        lines += wrap(note, "  - ", "    ")
    return "\n".join(lines)


def _several(word: str, names: set[str], plural: str = "") -> str:
    return f"{len(names)} {word if len(names) == 1 else plural or word + 's'}"


def _n(value: float | None, places: int = 2, sign: bool = False) -> str:
    return "undefined" if value is None else f"{value:{'+' if sign else ''}.{places}f}"


def _p(value: float | None) -> str:
    return "undefined" if value is None else "below 0.001" if value < 0.001 else f"{value:.3f}"


def _i(interval: Sequence[float] | None, places: int = 2, ends: str = "[]") -> str:
    if interval is None:
        return ""
    return f"{ends[0]}{interval[0]:.{places}f}, {interval[1]:.{places}f}{ends[1]}"


def _w(*parts: str) -> str:
    """Parts of a line with a blank between them; empty ones leave none."""
    return " ".join(p for p in parts if p)


def _b(bounds: Sequence[float] | None, places: int = 2) -> str:
    """Bounds where something is missing, else nothing."""
    if not bounds or bounds[0] is None or abs(bounds[0] - bounds[1]) < 1e-12:
        return ""
    return f"(missing: {bounds[0]:.{places}f} to {bounds[1]:.{places}f})"


def _published(rows: Sequence[Any], outside: Sequence[Any]) -> list[str]:
    odd = [r for r in rows if r.mismatch]
    lines = wrap(f"Published beside recomputed: {len(rows)} figures, {len(odd)} differ", "", "  ")
    width = max(len(r.published) for r in rows)
    ours = max(len(r.ours) for r in rows)
    for group in dict.fromkeys(r.group for r in rows):
        lines.append(f"  {group:<{width + ours + 3}}  (published, ours)")
        for row in rows:
            if row.group == group:
                mark = f"  {row.mismatch.upper()}" if row.mismatch else ""
                lines += wrap(f"{row.published:>{width}}  {row.ours:>{ours}}  {row.name}{mark}", "    ", "      ")
                if row.mismatch and row.note:
                    lines += wrap(row.note, "        ", "        ")
    if outside:
        lines.append("  Not in the archive, and not to be had from published counts")
        for entry in outside:
            lines += wrap(f"{entry['name']}: {entry['why']}", "    - ", "      ")
    return lines


def _v1(result: Mapping[str, Any]) -> list[str]:
    v = result["V1"]
    lines = [
        f"V1  Difficulty of {v['requirements']} requirements: share of suites that cover each, generators "
        "weighted equally"
    ]
    if v["mean"] is None:
        return [lines[0], *wrap(result["undefined"].get("V1.mean", "undefined"), "    ", "    ")]
    at = v["intervals"]
    lines += wrap(
        _w("mean", _n(v["mean"]), _i(at["mean"]), _b(v["bounds"].get("mean"))) + ", "
        + _w("median", _n(v["median"]), _i(at["median"])) + f", sd {_n(v['sd'])}", "    ", "    ",
    )  # fmt: skip
    lines += wrap(
        f"covered by more than 90 % of the suites: {v['above_90']}; by less than 25 %: {v['below_25']}; by none: "
        f"{v['never']}",
        "    ", "    ",
    )  # fmt: skip
    lines.append(f"    {'cell':<16}{'mean':>6}{'':16}{'sd':>6}{'>90 %':>7}{'<25 %':>7}{'never':>7}")
    for cell, row in v["by_cell"].items():
        lines.append(
            f"    {cell:<16}{_n(row['mean']):>6} {_i(row['intervals']['mean']):<15}{_n(row['sd']):>6}"
            f"{row['above_90']:>7}{row['below_25']:>7}{row['never']:>7}"
        )
    tail = v["hard_tail"]
    if tail:
        more = f" and {len(tail) - MOST_OF_TAIL} more" if len(tail) > MOST_OF_TAIL else ""
        lines += wrap(f"hard tail (below 25 %): {', '.join(tail[:MOST_OF_TAIL])}{more}", "    ", "      ")
    return lines


def _v2(result: Mapping[str, Any]) -> list[str]:
    lines = ["V2  Detection by fault class, design -> execution (n: verdicts on suites and faults)"]
    for generator, classes in result["V2"].items():
        lines.append(f"    {generator}")
        for name, row in classes.items():
            n = f"n={row['design_n']}/{row['execution_n']}"
            lines += wrap(
                _w(
                    f"{name:<25}", _n(row["design"]), _i(row["design_interval"]), _b(row["design_bounds"]), "->",
                    _n(row["execution"]), _i(row["execution_interval"]), _b(row["execution_bounds"]), f" {n}",
                ),
                "      ", "        ",
            )  # fmt: skip
        if reason := result["undefined"].get(f"V2.{generator}"):
            lines += wrap(reason, "      ", "      ")
    return lines


def _v3(result: Mapping[str, Any]) -> list[str]:
    lines = ["V3  Do the two stages say the same? Pairs of a suite and a fault"]
    undefined = result["undefined"]
    for generator, v in result["V3"].items():
        (both, design), (execution, neither) = v["table"]
        lines += wrap(
            f"{generator}: {v['pairs']} pairs; both {both}, design only {design}, execution only {execution}, "
            f"neither {neither}", "    ", "      ",
        )  # fmt: skip
        if v["alpha"] is None:
            lines += wrap(undefined.get(f"V3.{generator}.alpha", "undefined"), "      ", "      ")
            continue
        p, wide = v["per_fault"], v["faults_too"]
        if v["kappa"] is None:
            kappa = f"kappa undefined ({undefined[f'V3.{generator}.kappa']})"
        else:
            trap = undefined.get(f"V3.{generator}.kappa_interval", "")
            kappa = _w(
                "kappa", _n(v["kappa"], 3), _i(v["kappa_interval"]), f"({trap})" if "one thing only" in trap else ""
            )
        if p["baseline"] is None:
            per_fault = f"per fault: undefined ({undefined[f'V3.{generator}.per_fault']})"
        else:
            per_fault = (
                f"per fault: baseline {_n(p['baseline'], 3)}; margin as printed "
                + _w(_n(p["margin"], 3, True), _i(p["interval"], 3), _i(wide["per_fault_interval"], 3, "{}"))
                + "; corrected "
                + _w(_n(p["margin_corrected"], 4, True), _i(p["interval_corrected"], 3))
                + (f"; permutation p {_p(p['p'])}" if p["p"] is not None else "")
            )
        upper = v["upper"]
        if upper["value"] is None:
            above = f"upper bound undefined ({undefined[f'V3.{generator}.upper.value']})"
        else:
            above = _w("upper bound", _n(upper["value"], 3, True), _i(upper["interval"], 3))
            above += f"; two draws differ in {_n(upper['draws_differ'], 3)}"
        alpha = _w(
            "alpha", _n(v["alpha"], 3), _i(v["interval"]), _i(wide["interval"], ends="{}"), _b(v["bounds"]["alpha"])
        )
        margin = _w(_n(v["margin"], 3, True), _i(v["margin_interval"]), _i(wide["margin_interval"], ends="{}"))
        delta = _w(_n(v["delta"], 2, True), _i(v["delta_interval"]), _i(wide["delta_interval"], ends="{}"))
        table = [
            f"{alpha}; pooled chance alpha_0 {_n(v['alpha_0'], 3)}; margin {margin}",
            kappa,
            per_fault,
            _w("Delta", delta, _b(v["bounds"]["delta"])),
            above,
            f"McNemar p {_p(v['description']['mcnemar_p'])}, Fisher p {_p(v['description']['fisher_p'])}: "
            f"{v['description']['note']}",
        ]
        for line in table:
            lines += wrap(line, "      ", "        ")
    if any(v["alpha"] is not None for v in result["V3"].values()):
        for name in ("alpha_0", "per_fault"):
            lines += wrap(f"null of {name}: {result['nulls'][name]}", "    ", "      ")
    return lines


def _v4(result: Mapping[str, Any]) -> list[str]:
    lines = [
        "V4  Means by strategy, and rho, the range between them (by chance: the range when suites swap strategies)"
    ]
    for generator, measures in result["V4"].items():
        lines.append(f"    {generator}")
        reasons = {result["undefined"].get(f"V4.{generator}.{m}.rho") for m in measures}
        for measure, row in measures.items():
            means = ", ".join(_w(s, _n(m), _b(row["bounds"].get(s))) for s, m in row["strategies"].items())
            if row["rho"] is None:
                reason = "" if len(reasons) == 1 else f" ({result['undefined'][f'V4.{generator}.{measure}.rho']})"
                rho = f"rho undefined{reason}"
            else:
                chance = row["rho_by_chance"]
                rho = _w("rho", _n(row["rho"]), _i(row["rho_interval"]))
                rho += f", by chance {_n(chance['mean'])}, p {_p(chance['p'])}" if chance else ""
            lines += wrap(f"{measure:<6} {means}; {rho}", "      ", "        ")
        if len(reasons) == 1 and None not in reasons:
            lines += wrap(f"rho: {reasons.pop()}", "      ", "        ")
    return lines


def _figure(result: Mapping[str, Any]) -> list[str]:
    lines = ["Figure 2  Delta = FDR_d - FDR_e by strategy"]
    for generator, strategies in result["figure_2"].items():
        lines.append(f"    {generator}")
        for name, row in strategies.items():
            lines += wrap(
                _w(
                    f"{name:<10}", _n(row["delta"], 3, True), _i(row["interval"]), _i(row["faults_too"], ends="{}"),
                    _b(row["bounds"]), f" {row['suites']} suite{'s' * (row['suites'] != 1)}",
                ),
                "      ", "        ",
            )  # fmt: skip
    return lines


def _missing(result: Mapping[str, Any]) -> list[str]:
    lines = ["Verdicts by stage, and targets that are unknown because of missing ones"]
    held = result["missing"]
    for stage, counts in held["outcomes"].items():
        unknown = ""
        if stage in held["targets"]:
            unknown = f"; {held['unknown_targets'][stage]} of {held['targets'][stage]} targets unknown"
        said = ", ".join(f"{k} {v:,}" for k, v in counts.items()) or "none"
        lines += wrap(f"{stage}: {said}{unknown}", "    ", "      ")
    return lines


def as_csv(result: Mapping[str, Any]) -> str:
    """Every figure as one row: ``figure,value,low,high,reason``. A cell of what is undefined is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["figure", "value", "low", "high", "reason"])
    undefined = dict(result["undefined"])
    for path, value in _leaves(result):
        pair = isinstance(value, list)
        reason = undefined.pop(path, "") if value is None else ""
        cells = ["", *map(repr, value)] if pair else ["" if value is None else _cell(value), "", ""]
        writer.writerow([path, *cells, reason])
    for path, reason in undefined.items():
        writer.writerow([path, "", "", "", reason])
    return out.getvalue()


def _cell(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _leaves(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The numbers of a result by path; an interval is one leaf."""

    def walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                yield from walk(inner, f"{path}.{name}")
        elif isinstance(value, list) and len(value) == 2 and all(isinstance(v, int | float) for v in value):
            yield path, value
        elif isinstance(value, list) and path.endswith(".table"):
            for name, count in zip(("both", "design_only", "execution_only", "neither"), (*value[0], *value[1])):
                yield f"{path}.{name}", count
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, Mapping):
                    name = inner.get("target") or f"{inner.get('cell')}.{inner.get('suite')}"
                    fields = {k: v for k, v in inner.items() if not isinstance(v, str)}
                    yield from walk(fields, f"{path}.{name}")
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield path, value

    for name in ("V1", "V2", "V3", "V4", "figure_2", "V2_order", "cells", "suites", "missing"):
        yield from walk(result[name], name)


def reproduction_page(
    result: Mapping[str, Any], rows: Sequence[Any], outside: Sequence[Mapping[str, str]], command: str
) -> str:
    """docs/reproduction.md: every published figure beside ours."""
    odd = [r for r in rows if r.mismatch]
    r = result["resampling"]
    lines = [
        "# The published study, recomputed",
        "",
        f"Written by `{command}`. Do not edit: run it again. The archive is the public one of the study; it is "
        "not part of "
        "this project.",
        "",
        f"The study printed {len(rows)} figures and statements that its public archive, or its published counts, "
        "can give. "
        f"**{'All of them come out' if not odd else f'{len(odd)} differ, the others come out'} to the printed digit.** "
        f"Intervals come from {r['resamples']:,} resamples with seed {r['seed']}. The last column is empty where "
        "the printed "
        "digits are ours, and explains where they are not.",
        "",
        "The place is the section of the protocol that gives the figure. What each figure means, and its trap, is in "
        "[measures.md](measures.md).",
    ]
    for group in dict.fromkeys(x.group for x in rows):
        last = "figures it rests on" if group == "In words" else "mismatch"
        lines += [
            "",
            f"## {group}",
            "",
            f"| figure | place | published | ours | {last} |",
            "| --- | --- | --- | --- | --- |",
        ]
        for x in rows:
            if x.group == group:
                remark = "; ".join(t for t in (x.mismatch, x.note) if t)
                lines.append(f"| {x.name} | {x.place} | {x.published} | {x.ours} | {remark} |")
    lines += [
        "",
        "## Not to be had from the archive",
        "",
        "These rest on data outside the archive, and no published count gives them.",
        "",
        "| figure | place | why |",
        "| --- | --- | --- |",
        *(f"| {x['name']} | {x['place']} | {x['why']} |" for x in outside),
        "",
        "## Beside the published figures",
        "",
        "What the study did not print, from the same verdicts. The corrected margin is unbiased and its interval "
        "keeps what it "
        "promises; the wide intervals resample the faults of a cell too, and are the ones for new faults.",
        "",
        "| generator | per-fault margin, corrected | its interval | permutation p | alpha, faults too | Delta, "
        "faults too |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for g, v in result["V3"].items():
        p, wide = v["per_fault"], v["faults_too"]
        lines.append(
            f"| {g} | {_n(p['margin_corrected'], 4, True)} | {_i(p['interval_corrected'], 3)} | {_p(p['p'])} | "
            f"{_i(wide['interval'])} | {_i(wide['delta_interval'])} |"
        )
    return "\n".join(lines) + "\n"
