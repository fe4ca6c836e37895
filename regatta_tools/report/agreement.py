"""Agreement of raters for people and for tables."""

from __future__ import annotations

import csv
import io
from typing import Any

from regatta_tools.report.wrapping import wrap


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("-0.000", "0.000")


def _span(low: float, high: float) -> str:
    return f"[{low:.3f}, {high:.3f}]"


def as_text(result: dict[str, Any]) -> str:
    """The result of :func:`regatta_tools.measures.agreement.agree` for a terminal of any width from 40 columns."""
    how = result["resampling"]
    lines = wrap(f"Agreement of {result['source']}, {result['weights']} weights", "", "  ")
    found = "" if result["scale_declared"] else " (as found)"
    lines += wrap(f"scale: {', '.join(result['scale'])}{found}", "  ", "    ")
    lines += wrap(
        f"intervals: {how['level']:.0%}, {how['unit']} resampled{' within strata' if how['within'] else ''}, "
        f"{how['resamples']:,} times, seed {how['seed']}",
        "  ", "    ",
    )  # fmt: skip
    for group in result["groups"]:
        lines += ["", *_group(group)]
    if result["notes"]:
        lines += ["", "Before you use this"]
        for note in result["notes"]:
            lines += wrap(note, "  - ", "    ")
    return "\n".join(lines)


def _group(group: dict[str, Any]) -> list[str]:
    named = ", ".join(f"{k} {v}" for k, v in group["by"].items())
    counts = f"{group['items']} items, {group['items_rated_twice']} with two ratings or more"
    if group["clusters"] is not None:
        counts += f", {group['clusters']} clusters"
    lines = wrap(f"{named}: {counts}" if named else counts.capitalize(), "", "  ")
    if group["strata"]:
        lines += wrap("strata: " + ", ".join(f"{k or '(empty)'} {v}" for k, v in group["strata"].items()), "  ", "    ")
    for rater in group["raters"]:
        shares = ", ".join(f"{v} {share:.2f}" for v, share in (rater["shares"] or {}).items())
        missing = ", ".join(f"{kind} {n}" for kind, n in rater["missing"].items())
        text = f"{rater['name']}: {rater['ratings']} ratings" + (f" ({shares})" if shares else "")
        lines += wrap(text + (f"; missing: {missing}" if missing else ""), "  ", "    ")
    for name, figure in group["figures"].items():
        lines += wrap(f"{group['names'][name]:<28} {_figure(figure)}", "  ", "    ")
        bounds = figure.get("bounds")
        if bounds and bounds["low"] != bounds["high"]:
            lines += wrap(f"with all missing ratings differing, or agreeing: {_span(**bounds)}", "      ", "      ")
    for pair in group["pairs"]:
        lines += _pair(pair, len(group["pairs"]) > 1)
    return lines


def _figure(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return f"undefined: {figure['reason']}"
    if figure["low"] is None:
        return f"{_number(figure['value'])} ({figure['reason']})"
    return f"{_number(figure['value'])}  {_span(figure['low'], figure['high'])}"


def _pair(pair: dict[str, Any], with_kappa: bool) -> list[str]:
    one, two = pair["raters"]
    lines = wrap(f"{one} and {two}, {pair['n']} items", "  ", "    ")
    agreement = pair["agreement"]
    if agreement["value"] is None:
        return [*lines, *wrap(f"undefined: {agreement['reason']}", "    ", "      ")]
    same = round(agreement["value"] * pair["n"])
    exact, score = _span(agreement["low"], agreement["high"]), _span(**agreement["wilson"])
    text = f"the same on {same} of {pair['n']}; were items independent: exact {exact}, Wilson {score}"
    lines += wrap(text, "    ", "      ")
    if with_kappa:
        kappa = _figure(pair["kappa"] | {"low": None}) if pair["kappa"]["reason"] else _number(pair["kappa"]["value"])
        lines += wrap(f"kappa {kappa}", "    ", "      ")
    on = ", ".join(f"{v} {_number(share)}" for v, share in pair["agreement_on"].items())
    lines += wrap(f"agreement on each answer: {on}", "    ", "      ")
    if pair["prevalence_index"]["value"] is not None:
        text = f"prevalence index {pair['prevalence_index']['value']:.3f}, bias index {pair['bias_index']['value']:.3f}"
        lines += wrap(text, "    ", "      ")
    lines += wrap(pair["direction"]["in_words"], "    ", "      ")
    test = pair["direction"]["mcnemar"]
    if test["p"] is not None:
        lines += wrap(f"McNemar, exact: p = {test['p']:.4g} ({test['note']})", "    ", "      ")
    for note in pair["notes"]:
        lines += wrap(f"note: {note}", "    ", "      ")
    return lines


COLUMNS = ("group", "raters", "figure", "value", "low", "high", "interval", "n", "reason")


def as_csv(result: dict[str, Any]) -> str:
    """One row a figure. A figure that is not defined has an empty cell and its reason."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for group in result["groups"]:
        name = "; ".join(f"{k}={v}" for k, v in group["by"].items())
        everybody = "; ".join(r["name"] for r in group["raters"])
        for figure, f in group["figures"].items():
            how = "bootstrap" if f["low"] is not None else ""
            writer.writerow([name, everybody, figure, *_cells(f), how, f["n"], f["reason"] or ""])
        for pair in group["pairs"]:
            both, n = "; ".join(pair["raters"]), pair["n"]
            f = pair["agreement"]
            writer.writerow([name, both, "pair agreement", *_cells(f), "exact" if n else "", n, f["reason"] or ""])
            if f["wilson"]:
                writer.writerow([name, both, "pair agreement", *_cells(f | f["wilson"]), "wilson", n, ""])
            for key in ("kappa", "prevalence_index", "bias_index"):
                f = pair[key] | {"low": None, "high": None}
                writer.writerow([name, both, f"pair {key}", *_cells(f), "", n, f["reason"] or ""])
            test = pair["direction"]["mcnemar"]
            f = {"value": test["p"], "low": None, "high": None}
            writer.writerow([name, both, "pair mcnemar p", *_cells(f), "", n, test["reason"] or test["note"]])
    return out.getvalue()


def _cells(figure: dict[str, Any]) -> list[str]:
    return ["" if figure[k] is None else repr(float(figure[k])) for k in ("value", "low", "high")]
