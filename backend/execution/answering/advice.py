"""What would make a view answer a query that is evaluated each time, by the beginning of the reason that EXPLAIN gives."""

from __future__ import annotations

_ADVICE = {
    "its rows are locked": "Leave out FOR UPDATE and FOR SHARE where rows are only read.",
    "it reads no table": "Nothing: there is no table whose changes could be followed.",
    "it reads computed tables": "Nothing: information_schema and millrace are made when they are asked for.",
    "parts of it depend": "Write the part that is computed first (WITH RECURSIVE, JSON_TABLE, a derived table) as a query of its own.",
    "it has rows that come from no table": "Leave the rows of constants to the application, or put them into a table.",
    "its result changes while": "Send NOW(), RAND() and the like as a value: WHERE created_at > ? stays the same query.",
    "it depends on the moment": "Send the time as a value that many requests share: that of the full minute, say.",
    "it is about more than": "Ask for fewer values at once, or by an index.",
    "it has no key and gives": "Add WHERE column = ?, or ORDER BY … LIMIT: then only what is asked for is kept.",
    "it has no key and takes long": "Add WHERE column = ?, so that each key is computed by itself, or serve with one worker.",
    "it needs an ordered view": "Add WHERE column = ?, or serve with one worker.",
    "reading its table costs less": "Nothing: the rows come from an index. With one worker it would be a view.",
    "read from the base table": "Add an index on the columns of the WHERE; with WHERE column = ? on an indexed column it is a view.",
}


def advice(reason: str) -> str:
    return next((text for beginning, text in _ADVICE.items() if reason.startswith(beginning)), "")
