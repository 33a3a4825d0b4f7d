"""Advice for queries that are evaluated each time: a change that would give the query a view, by the beginning of EXPLAIN's reason."""

from __future__ import annotations

_ADVICE = {
    "its rows are locked": "Leave out FOR UPDATE and FOR SHARE where rows are only read.",
    "it reads no table": "Nothing would: a view follows the changes of tables.",
    "it reads computed tables": "Nothing would: information_schema and millrace are computed at each read.",
    "parts of it depend": "Send the part that is computed first (WITH RECURSIVE, JSON_TABLE, a derived table) as a separate query.",
    "it has rows that come from no table": "Leave the rows of constants to the application, or put them into a table.",
    "its result changes while": "Compute NOW() or RAND() in the application and send the value: WHERE created_at > ? stays the same query.",
    "it depends on the moment": "Send the time as a value that many requests share, for example the full minute.",
    "it is about more than": "Ask for fewer values at once, or by an index.",
    "it has no key and gives": "Add WHERE column = ?, or ORDER BY … LIMIT: then the view keeps only the keys or rows that are asked for.",
    "read from the base table": "Add WHERE column = ?, or ORDER BY … LIMIT. Reading one table along an index needs no view.",
}


def advice(reason: str) -> str:
    return next((text for beginning, text in _ADVICE.items() if reason.startswith(beginning)), "")
