"""REGATTA: does a test suite for an AI agent expose breaches of concrete legal obligations?

The functions below are the whole public interface; the command line only calls them.

======================  ==========================================================================
:func:`load`            the package of instruments (sources, cells, requirements, faults)
:func:`validate`        findings on a package or a suite file
:func:`audit`           are the obligations true, binding and in force, and who has read them
:func:`generate`        suites written by a model from the ontology context of a cell
:func:`run`             the two-stage harness on a suite
:func:`score`           the evidence vector of a run
:func:`compare`         strategies and generators beside each other, with intervals
:func:`diagnose`        the diagnostics V1 to V4 over many suites
:func:`agree`           agreement of raters
:func:`power`           the difference that a study can see, and what it takes
======================  ==========================================================================

Measurement and formulas: Luong and Sanyal (2026), REGATTA; sections are cited in each docstring.
Importing this module imports nothing heavy: each function loads what it needs when it is called.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = [
    "__version__", "agree", "audit", "compare", "diagnose", "generate", "load", "power", "run", "score", "validate",
]  # fmt: skip


def load(path: Any = None) -> Any:
    """Read a package and return its :class:`~regatta_tools.tables.package.Package`.

    ``path`` is a folder that holds ``datapackage.json``, or that file; ``None`` takes the package
    that this installation carries. Raises :class:`~regatta_tools.errors.InputError` where there is
    none or where its tables have errors (:func:`validate` lists them). What is waived today is none.
    """
    from regatta_tools.validation.run import load as _load

    return _load(path)


def validate(path: Any = None, *, as_of: Any = None, today: Any = None, changed_since: str | None = None) -> Any:
    """Check a package or a suite file and return a :class:`~regatta_tools.rules.findings.Report`.

    ``as_of`` is the date for rules about time (ISO text or :class:`datetime.date`; default: each
    cell's own ``as_of``). ``today`` is the day on which waivers have to hold (default: ``as_of`` where
    it is given, else the day of the call); what they take out is in ``Report.waived``.
    With ``changed_since``, a git revision, only what the change since then brought in is left.
    Findings are data, not exceptions; an unusable path raises :class:`~regatta_tools.errors.InputError`.
    """
    from regatta_tools.validation.run import validate as _validate

    return _validate(path, as_of=as_of, today=today, changed_since=changed_since)


def audit(
    path: Any = None,
    *,
    texts: Any = None,
    cells: Any = (),
    requirements: Any = (),
    as_of: Any = None,
    within: int | None = None,
    changed_since: str | None = None,
) -> Any:
    """Audit the active requirements of a package; an :class:`~regatta_tools.provenance.outcomes.AuditReport`.

    ``texts`` is a folder with texts of the law (docs/texts.md); without it only recorded readings speak. ``cells`` and
    ``requirements`` (ids) narrow it down, ``as_of`` is the day (ISO text or :class:`datetime.date`; default: each
    cell's own), ``within`` asks for what starts or ends within so many days. With ``changed_since``, a git revision,
    only requirements that the change since then touched, and findings that it brought in, are left.
    Outcomes are those of the published audit (protocol, section 7). Raises
    :class:`~regatta_tools.errors.InputError` for what is not there or not active.
    """
    from regatta_tools.provenance.run import run_audit

    return run_audit(
        path,
        texts=texts,
        cells=cells,
        requirements=requirements,
        as_of=as_of,
        within=within,
        changed_since=changed_since,
    )


def run(suite: Any, *, cell: str, **options: Any) -> Any:
    """Run the two-stage harness of the protocol (sections 3 and 11) on a suite.

    See :func:`regatta_tools.harness.run.run` for the options and what is returned.
    """
    from regatta_tools.harness.run import run as _run

    return _run(suite, cell=cell, **options)


def generate(**options: Any) -> Any:
    """Have a model write suites from the ontology context of a cell (protocol, section 4).

    See :func:`regatta_tools.generation.making.plan` for the options; returns a list of
    :class:`~regatta_tools.generation.making.Made`. What is sent to a hosted model is the context of the cell.
    """
    from regatta_tools.generation.making import generate as _generate

    return _generate(**options)


def compare(source: Any, **options: Any) -> Any:
    """Generate, run and diagnose the suites of a plan or a folder, and compare their strategies (protocol, section 5).

    See :func:`regatta_tools.harness.compare.compare` for the options and the form of what is returned.
    """
    from regatta_tools.harness.compare import compare as _compare

    return _compare(source, **options)


def score(run: Any) -> Any:
    """Compute the evidence vector of a run folder (protocol, sections 3 and 11).

    Returns a plain ``dict`` in the form of the class ``EvidenceVector`` of the schema.
    """
    from regatta_tools.measures.evidence import score as _score

    return _score(run)


def diagnose(**options: Any) -> Any:
    """Compute the diagnostics V1 to V4 and figure 2 (protocol, section 5) of runs, a table of verdicts, or the archive.

    See :func:`regatta_tools.measures.diagnostics.diagnose` for the options and the form of what is returned.
    """
    from regatta_tools.measures.diagnostics import diagnose as _diagnose

    return _diagnose(**options)


def agree(*files: Any, **options: Any) -> Any:
    """Compute the agreement of two raters or more, from a CSV table or label files.

    See :func:`regatta_tools.measures.agreement.agree` for the options and the form of what is returned.
    """
    from regatta_tools.measures.agreement import agree as _agree

    return _agree(*files, **options)


def power(**options: Any) -> Any:
    """Plan a comparison of strategies: minimum detectable difference, what it takes, and where verdicts vary.

    See :func:`regatta_tools.measures.power.power` for the options and the form of what is returned.
    """
    from regatta_tools.measures.power import power as _power

    return _power(**options)
