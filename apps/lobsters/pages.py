"""The pages of the site: the statements of each, as `queries.json` describes them, ready to run.

A page's statements run one after the other; a parameter comes from the request or from an earlier answer of the
same page. Whoever executes a statement is given as a function, so the same page runs on several servers and
through several drivers. The baseline's hotness is computed from what its pages read anyway, so that it always
equals what the natural variant derives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from importlib import resources
from typing import Any, Protocol

_WHEN = re.compile(r"(\S+) returned (no row|a row|rows)")
_ROWS_OF = re.compile(r"number of rows of (\S+)")
_PLACE = re.compile(r"\?\*?")
_DECIMAL_PLACES = Decimal("1e-16")


class Answer(Protocol):
    """What later statements of a page read of an answer. Values are as the driver gives them: numbers may be numbers, or text."""

    @property
    def row_count(self) -> int: ...

    @property
    def insert_id(self) -> int: ...

    def first(self, column: str) -> Any: ...

    def values(self, column: str) -> Sequence[Any]: ...

    def keys(self, column: str) -> Keys: ...


class Keys(list[int]):
    """The distinct values of a column, in order, and their text: a list that several statements of a page ask for is written once."""

    __slots__ = ("text",)

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__(sorted({int(value) for value in values if value is not None}))
        self.text = ", ".join(map(str, self))


@dataclass(frozen=True, slots=True)
class Result:
    """An answer whose rows are all at hand."""

    columns: Mapping[str, int] = field(default_factory=dict)
    rows: Sequence[Sequence[Any]] = ()
    insert_id: int = 0

    @property
    def row_count(self) -> int:
        return len(self.rows)

    def first(self, column: str) -> Any:
        return self.rows[0][self.columns[column]]

    def values(self, column: str) -> list[Any]:
        place = self.columns[column]
        return [row[place] for row in self.rows]

    def keys(self, column: str) -> Keys:
        return Keys(self.values(column) if self.rows else ())


class Visit:
    """One request for a page, and what its statements have answered so far."""

    __slots__ = ("request", "results")

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.results: dict[str, Any] = {}  # of the kind of Answer that the driver gives


Source = Callable[[Visit], Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """`pieces` are the texts around the parameters. A parameter that is a list is spread over its place."""

    name: str
    pieces: tuple[str, ...]
    sources: tuple[Source, ...]
    condition: Callable[[Visit], bool] | None
    is_read: bool
    is_prepared: bool
    has_lists: bool
    marked: str
    """The SQL as it is written, with `?` and `?*`."""

    def text(self, values: Sequence[Any], escape: Callable[[str], str]) -> str:
        """The SQL with the values as literals."""
        sql = [self.pieces[0]]
        for value, piece in zip(values, self.pieces[1:]):
            sql += [_literal(value, escape), piece]
        return "".join(sql)

    def spread(self, values: list[Any]) -> tuple[str, list[Any]]:
        """The SQL with one `?` for each value, and the values."""
        if not self.has_lists:
            return self.marked, values
        sql, flat = [self.pieces[0]], list[Any]()
        for value, piece in zip(values, self.pieces[1:]):
            given = value if isinstance(value, Keys) else [value]
            sql += [", ".join("?" * len(given)), piece]
            flat += given
        return "".join(sql), flat


def _literal(value: Any, escape: Callable[[str], str]) -> str:
    match value:
        case int() | Decimal():
            return str(value)
        case Keys():
            return value.text
        case str() | datetime():
            return f"'{escape(str(value))}'"
        case None:
            return "NULL"
    raise TypeError(value)


Step = tuple[Statement, list[Any]]
Execute = Callable[[Statement, list[Any]], Answer]
Pages = Mapping[str, tuple[Statement, ...]]

_NOTHING = Result()
NO_KEYS = Keys(())


def pages(variant: str, mariadb: bool = False) -> Pages:
    """The statements of every page, `baseline` or `natural`. MariaDB's natural ones have a form that it answers faster."""
    found = json.loads(resources.files("apps.lobsters").joinpath("queries.json").read_text())
    return {
        page: tuple(_statement(page, each, mariadb) for each in variants[variant]) for page, variants in found.items()
    }


def page_steps(statements: Sequence[Statement], request: Mapping[str, Any]) -> Generator[Step, Answer, Visit]:
    """Every statement of the page that the request calls for, with its values, given the answers of those before.

    A statement whose list is empty is left out.
    """
    visit = Visit(request)
    results = visit.results
    for statement in statements:
        name = statement.name
        results[name] = _NOTHING
        if statement.condition is not None and not statement.condition(visit):
            continue
        values = [source(visit) for source in statement.sources]
        if NO_KEYS not in values:
            results[name] = yield statement, values
    return visit


def run_page(statements: Sequence[Statement], request: Mapping[str, Any], execute: Execute) -> Visit:
    """The page's statements, one after the other."""
    steps = page_steps(statements, request)
    try:
        step = next(steps)
        while True:
            step = steps.send(execute(*step))
    except StopIteration as end:
        visit: Visit = end.value
        return visit


def _statement(page: str, described: dict[str, Any], mariadb: bool) -> Statement:
    sql = described.get("mariadb_sql", described["sql"]) if mariadb else described["sql"]
    when = _WHEN.match(described.get("when", ""))
    return Statement(
        described["name"],
        tuple(_PLACE.split(sql)),
        tuple(_parameter(page, each) for each in described["params"]),
        None if when is None else partial(_is_called_for, when[1], when[2] != "no row"),
        described["kind"] == "read",
        described["ref_protocol"] == "prepared",
        "?*" in sql,
        sql,
    )


def _is_called_for(earlier: str, wants_rows: bool, visit: Visit) -> bool:
    return bool(visit.results[earlier].row_count) == wants_rows


def _parameter(page: str, described: dict[str, Any]) -> Source:
    if described["name"] == "hotness":
        return partial(_hotness, page)
    source = _source(page, described["source"])
    match described["type"]:
        case "int":
            return lambda visit: None if (found := source(visit)) is None else int(found)
        case "decimal":
            return lambda visit: Decimal(source(visit)).quantize(_DECIMAL_PLACES)
        case _:
            return source


def _source(page: str, text: str) -> Source:
    kind, _, rest = text.partition(":")
    match kind:
        case "req":
            return lambda visit: visit.request[rest]
        case "clock":
            return lambda visit: visit.request["now"]
        case "const":
            return lambda visit: rest
        case "row":
            query, column = rest.rsplit(".", 1)
            return lambda visit: visit.results[query].first(column)
        case "set":
            query, column = rest.rsplit(".", 1)
            return lambda visit: visit.results[query].keys(column)
        case "insert_id":
            return lambda visit: visit.results[rest].insert_id
        case "calc":
            return _computed(page, rest)
    raise ValueError(text)


def _computed(page: str, text: str) -> Source:
    counted = _ROWS_OF.match(text)
    if counted is not None:
        query = counted[1]
        return lambda visit: visit.results[query].row_count
    if " / " in text:
        return partial(_confidence, f"{page}.comment")
    parts = [_part(page, each) for each in text.split(" + ")]
    return lambda visit: "".join(str(part(visit)) for part in parts)


def _part(page: str, text: str) -> Source:
    if text.startswith("'"):
        return lambda visit: text[1:-1]
    if text == "uid":
        return lambda visit: visit.request["uid"]
    source = _source(page, text)
    return lambda visit: found.decode() if isinstance(found := source(visit), bytes) else found


def _confidence(query: str, visit: Visit) -> Decimal:
    comment = visit.results[query]
    ups, downs = int(comment.first("upvotes")), int(comment.first("downvotes"))
    return Decimal(ups) / (ups + downs)


def _hotness(page: str, visit: Visit) -> Decimal:
    """Smaller is hotter: tags, own votes with the one being cast, and what others' comments got."""
    results = visit.results
    if page == "submit":
        tags, total = results["submit.tag"], 1
    else:
        tags, story = results[f"{page}.hot_tags"], results[f"{page}.story"]
        cast = {"story_upvote": 1, "story_downvote": -1}.get(page, 0)
        total = int(story.first("upvotes")) - int(story.first("downvotes")) + cast
    total += sum(map(int, tags.values("hotness_mod"))) if tags.row_count else 0
    comments = results.get(f"{page}.hot_comments", _NOTHING)
    if comments.row_count:
        total += sum(map(int, comments.values("upvotes"))) - sum(map(int, comments.values("downvotes")))
    return Decimal(-total)
