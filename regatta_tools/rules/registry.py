"""The registry of rules: one YAML file a rule in ``validators/``.

A rule file holds ``code``, ``severity``, ``title``, ``why``, ``mend``, ``since`` and ``engine``. The
engine ``sql`` runs the file's ``query``; every other engine is code in this package that raises the
code itself, and the file is where the code is explained. So each code has one home for its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from regatta_tools import paths
from regatta_tools.errors import EnvironmentProblem
from regatta_tools.rules.findings import Finding, Severity
from regatta_tools.text import readable

#: Engines that a rule file may name. Only ``sql`` carries a query.
ENGINES = ("reader", "schema", "keys", "sql", "python", "waiver", "suite", "sheet", "audit")
_FIELDS = {"code", "severity", "title", "why", "mend", "since", "engine"}
_SQL_FIELDS = {"table", "field", "query"}


@dataclass(frozen=True)
class Rule:
    """One rule. ``table`` and ``field`` say where a row of ``query`` points; see validators/README.md."""

    code: str
    severity: Severity
    title: str
    why: str
    mend: str
    since: str
    engine: str
    table: str = ""
    field: str = ""
    query: str = ""

    def finding(
        self, message: str, *, file: str = "", line: int = 0, column: int = 0, record: str = "", mend: str = ""
    ) -> Finding:
        """A finding of this rule; ``mend`` overrides the rule's own where a better one is known."""
        return Finding(self.code, self.severity, readable(file), line, column, record, message, mend or self.mend)


@lru_cache(maxsize=4)
def rules(folder: Path | None = None) -> dict[str, Rule]:
    """All rules by code, in the order of their codes.

    Raises :class:`EnvironmentProblem` where a rule file is not in the form above: a broken registry
    must stop the check, not weaken it.
    """
    # The reader of suites, for it refuses double keys, tags and words that YAML 1.1 takes for false.
    from regatta_tools.documents import SyntaxProblem, read_document

    folder = folder or paths.validators_dir()
    found: dict[str, Rule] = {}
    for path in sorted(p for p in folder.glob("*") if p.suffix in (".yaml", ".yml")):
        try:
            raw = read_document(path).value
        except SyntaxProblem as problem:
            place = f"{path.name}:{problem.line}"
            raise EnvironmentProblem(f"rule file: {problem.message}", code="E302", place=place) from problem
        except OSError as error:
            raise EnvironmentProblem(f"rule file cannot be read: {error}", code="E302", place=path.name) from error
        want = _FIELDS | (_SQL_FIELDS if isinstance(raw, dict) and raw.get("engine") == "sql" else set())
        texts = isinstance(raw, dict) and all(isinstance(v, str) and v.strip() for v in raw.values())
        if not texts or set(raw) != want:
            raise EnvironmentProblem(
                f"rule file must hold exactly {', '.join(sorted(want))}, each a text", code="E302", place=path.name
            )
        rule = Rule(**{k: v.strip() for k, v in raw.items()})
        if rule.engine not in ENGINES or rule.severity not in ("error", "warning", "info"):
            raise EnvironmentProblem("unknown engine or severity", code="E302", place=path.name)
        if not re.fullmatch("[A-Z][0-9]{3}", rule.code) or not path.name.startswith(f"{rule.code}-"):
            raise EnvironmentProblem("file name must start with the rule's own code", code="E302", place=path.name)
        if rule.code in found:
            raise EnvironmentProblem(f"the code {rule.code} is given twice", code="E302", place=path.name)
        found[rule.code] = rule
    if not found:
        raise EnvironmentProblem("no rules found", code="E302", place=str(folder.name), mend="reinstall REGATTA")
    return found


def rule(code: str) -> Rule:
    """The rule of a code. A code without a rule file is a defect of REGATTA, hence a plain ``KeyError``."""
    return rules()[code]
