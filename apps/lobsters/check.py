"""The same requests on two servers, one after the other, and every answer compared:
`python -m apps.lobsters.check PORT PORT_OF_MARIADB DATABASE VARIANT SCALE COUNT` writes each difference on a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from apps.lobsters.connection import TextConnection
from apps.lobsters.pages import Result, Statement, pages, run_page
from apps.lobsters.requests import requests

START = datetime(2018, 6, 1)


def differences(ours: int, theirs: int, database: str, variant: str, scale: float, count: int) -> Iterator[str]:
    """Answers that are not the same; rows without ORDER BY may come in another order."""
    found: list[str] = []
    known = pages(variant)
    with ExitStack() as stack:
        millrace, mariadb = (stack.enter_context(closing(TextConnection("127.0.0.1", port, database))) for port in (ours, theirs))

        def execute(statement: Statement, values: list[Any]) -> Result:
            expected, answered = mariadb.execute(statement, values), millrace.execute(statement, values)
            if _comparable(statement, expected) != _comparable(statement, answered):
                found.append(f"{statement.name} {values}: expected {expected}, found {answered}")
            return expected

        for number, (page, request) in enumerate(islice(requests(scale, 1, START), count)):
            request["now"] = START + timedelta(seconds=number)
            run_page(known[page], request, execute)
            yield from found
            found.clear()


def _comparable(statement: Statement, result: Result) -> Any:
    is_ordered = any("ORDER BY" in piece for piece in statement.pieces)
    rows = result.rows if is_ordered else sorted(result.rows, key=repr)
    return list(rows), result.insert_id


def main() -> None:
    ours, theirs, database, variant, scale, count = sys.argv[1:]
    for each in differences(int(ours), int(theirs), database, variant, float(scale), int(count)):
        print(each, flush=True)


if __name__ == "__main__":
    main()
