"""docs/sql-reference.md, written from the tests: the queries of tests/logic/queries and the calls of functions that are compared with MariaDB.

So the page shows nothing that is not tested, and each example is one whose answer is known to be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.logic.test_queries import asked, statements
from tests.unit.dataflow.functions import date_cases, json_cases, numeric_cases, text_cases
from tests.unit.dataflow.functions.oracle import Case, ours, sql

PAGE = Path(__file__).parents[2] / "docs" / "sql-reference.md"
EXAMPLES_MAX = 3
LINE_LENGTH_MAX = 110
QUERIES = {
    "Joins": "joins", "Subqueries": "subqueries", "LATERAL": "lateral", "Groups": "groups", "Sets": "set_operations", "Windows": "windows",
    "Recursion": "recursion", "Writing": "writes",
}  # fmt: skip
FUNCTIONS = {"Text": text_cases.CASES, "Numbers": numeric_cases.CASES, "Dates and times": date_cases.CASES, "JSON": json_cases.CASES}

HEAD = """# SQL by example

Each statement here is one of our tests: millrace and MariaDB give the same answer. The test `tests/logic/test_sql_reference.py` writes this page
(`--rewrite`). [SQL that millrace runs](sql-support.md) lists supported and refused SQL.
"""


def written() -> str:
    parts = [HEAD, "## Tables of the examples\n", _code(statements("tables"), 10_000)]
    for title, name in QUERIES.items():
        parts += [f"## {title}\n", _code(asked(line)[1] for line in statements(name))]
    for title, cases in FUNCTIONS.items():
        parts += [f"## Functions: {title.lower()}\n", "| function | examples |\n|---|---|", *_rows(cases), ""]
    return "\n".join(parts)


def _code(lines: Iterable[str], length_max: int = LINE_LENGTH_MAX) -> str:
    kept = [f"{line};" for line in lines if len(line) <= length_max]
    return "\n".join(["```sql", *kept, "```", ""])


def _rows(cases: Iterable[Case]) -> list[str]:
    examples: dict[str, list[str]] = {}
    for case in cases:
        written = sql(case)
        name = written.partition("(")[0]
        answer = ours(case)[0]
        of_name = examples.setdefault(name, [])
        if len(of_name) < EXAMPLES_MAX and isinstance(answer, bytes) and _is_plain(written) and _is_plain(shown := answer.decode(errors="replace")):
            of_name.append(f"`{written}` is `{shown}`")
    return [f"| {name} | {'; '.join(shown)} |" for name, shown in sorted(examples.items()) if shown]


def _is_plain(text: str) -> bool:
    """Whether it can be shown in a cell of a table."""
    return 0 < len(text) <= LINE_LENGTH_MAX // 2 and text.isprintable() and not set(text) & set("|`�") and text == text.strip()
