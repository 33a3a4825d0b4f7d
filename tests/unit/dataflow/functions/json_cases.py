"""Calls of the JSON functions whose answers are worth comparing; documents are compared by value."""

from __future__ import annotations

from decimal import Decimal

from tests.unit.dataflow.functions.oracle import Case

_DOCUMENT = '{"a": 1, "b": [1, 2, {"c": "x"}], "d": {"c": null, "e f": true}, "": 5}'
_PATHS = (
    "$", "$.a", "$.b", "$.b[0]", "$.b[2].c", "$.b[3]", "$.d.c", '$.d."e f"', "$.d.*", "$.b[*]", "$**.c", "$.x", "$.a.b", "$ . a",
    "$.b[ 1 ]", "$.*", "$.b[last]", "$.b[last-1]", "$.b[0 to 1]", '$.""', "$[0]", "$[1]", "$[last]", "$.a[0]", "$.a[1]", "$.b[last-5]", "$.b[1 to last]",
)  # fmt: skip
_BAD_PATHS = ("", "a", "$.", "$[", "$[a]", "$a", "$**", "$..a", "$.a[-1]", "$.a b")
_VALUES = ("1", "-1", "1.5", '"a"', "true", "null", "[]", "{}", "[1, 2]", '{"a": 1}', "x", "", '"', "[1", "1 2", '{"a"}', "nul", " 1 ", "1e2", "18446744073709551615", "-0")

CASES: tuple[Case, ...] = (
    *(("json_extract", _DOCUMENT, path) for path in _PATHS),
    *(("json_extract", _DOCUMENT, path) for path in _BAD_PATHS),
    ("json_extract", _DOCUMENT, "$.a", "$.b[0]"), ("json_extract", _DOCUMENT, "$.x", "$.y"), ("json_extract", _DOCUMENT, "$.a", "$.x"), ("json_extract", None, "$"), ("json_extract", _DOCUMENT, None), ("json_extract", "[1, [2, 3]]", "$[1][0]"), ("json_extract", "5", "$"), ("json_extract", "[1,[2,[3]]]", "$**[0]"), ("json_extract", '{"é": 1}', "$.é"),
    *((name, value) for name in ("json_valid", "json_type", "json_depth", "json_length", "json_keys") for value in (*_VALUES, None)),
    ("json_valid", 1), ("json_depth", "[[], {}, [1]]"), ("json_depth", _DOCUMENT), ("json_type", "18446744073709551616"),
    ("json_length", _DOCUMENT, "$.b"), ("json_length", _DOCUMENT, "$.x"), ("json_length", _DOCUMENT, "$.d"), ("json_keys", _DOCUMENT, "$.d"), ("json_keys", _DOCUMENT, "$.b"), ("json_keys", '{"a": {"b": 1}}'), ("json_keys", _DOCUMENT, None), ("json_length", _DOCUMENT, "$.*"),
    ("json_quote", "null"), ("json_quote", '"null"'), ("json_quote", "a\nb\t\\"), ("json_quote", None), ("json_quote", "é€"), ("json_quote", "\x01"),
    ("json_unquote", '"abc"'), ("json_unquote", "abc"), ("json_unquote", '"a\\nb"'), ("json_unquote", "[1]"), ("json_unquote", None), ("json_unquote", '"'), ("json_unquote", '""'), ("json_unquote", '"\\u00e9"'), ("json_unquote", "1"),
    ("json_value", _DOCUMENT, "$.a"), ("json_value", _DOCUMENT, "$.b[2].c"), ("json_value", _DOCUMENT, "$.b"), ("json_value", _DOCUMENT, "$.x"), ("json_value", _DOCUMENT, "$.d.c"), ("json_value", None, "$"),
    ("json_array",), ("json_array", 1, "a", None, Decimal("1.50")), ("json_array", "[1]"), ("json_array", "é\"\\"), ("json_object",), ("json_object", "a", 1, "b", "x"), ("json_object", "a", None), ("json_object", "a"), ("json_object", None, 1), ("json_object", 1, 2),
    *(("json_contains", target, candidate) for target in ("[1, 2, [3, 4], \"a\", {\"b\": 1, \"c\": 2}]", "{\"b\": 1, \"c\": [1, 2]}", "1", "[]", "true", "1.0", "\"a\"") for candidate in ("1", "[1, 2]", "[3]", "[[3]]", "\"a\"", "{\"b\": 1}", "{\"c\": 2}", "{\"c\": [1]}", "[]", "{}", "true", "null", "5", "1.0", "[\"a\", 1]")),
    ("json_contains", _DOCUMENT, "1", "$.a"), ("json_contains", _DOCUMENT, "2", "$.a"), ("json_contains", _DOCUMENT, "1", "$.x"), ("json_contains", _DOCUMENT, "1", "$.*"), ("json_contains", None, "1"), ("json_contains", "1", None), ("json_contains", "x", "1"),
    ("json_contains_path", _DOCUMENT, "one", "$.a", "$.x"), ("json_contains_path", _DOCUMENT, "all", "$.a", "$.x"), ("json_contains_path", _DOCUMENT, "all", "$.a", "$.d.c"), ("json_contains_path", _DOCUMENT, "ONE", "$**.c"), ("json_contains_path", _DOCUMENT, "x", "$.a"), ("json_contains_path", None, "one", "$.a"), ("json_contains_path", _DOCUMENT, "one", "$.b[3]"), ("json_contains_path", _DOCUMENT, None, "$.a"), ("json_contains_path", _DOCUMENT, "one", "$.x", None),
    *((name, _DOCUMENT, path, 9) for name in ("json_set", "json_insert", "json_replace", "json_array_append") for path in ("$", "$.a", "$.z", "$.b[0]", "$.b[3]", "$.b[9]", "$.b[2].z", "$.x.y", "$.a.b", "$.d.c", "$.*", "$**.c", "x", "$.b", "$.d")),
    *((name, "[1, [2, 3]]", path, "x") for name in ("json_set", "json_insert", "json_replace", "json_array_append", "json_array_insert") for path in ("$[0]", "$[1]", "$[2]", "$[1][1]", "$[1][5]", "$[5][0]", "$[last]")),
    *((name, "1", "$[1]", 2) for name in ("json_set", "json_insert", "json_replace")),
    ("json_set", _DOCUMENT, "$.a", None), ("json_set", None, "$.a", 1), ("json_set", _DOCUMENT, None, 1), ("json_set", _DOCUMENT, "$.a", 1, "$.b", 2), ("json_set", _DOCUMENT, "$.a"), ("json_set", "{}", "$.a", "[1]"), ("json_set", "{}", "$.a", Decimal("1.5"), "$.b", "x"), ("json_set", "{}", "$.a", "{}", "$.a.b", 1),
    ("json_array_append", '["a", ["b", "c"], "d"]', "$[1]", 1, "$[0]", 2), ("json_array_insert", '["a", {"b": [1, 2]}, [3, 4]]', "$[1]", "x"), ("json_array_insert", '["a", {"b": [1, 2]}, [3, 4]]', "$[100]", "x"), ("json_array_insert", '["a", {"b": [1, 2]}, [3, 4]]', "$[1].b[0]", "x"), ("json_array_insert", '["a", {"b": [1, 2]}, [3, 4]]', "$[0]", "x", "$[2][1]", "y"), ("json_array_insert", "[1]", "$.a", 1), ("json_array_insert", "[1]", "$", 1), ("json_array_insert", '{"a": 1}', "$.a[0]", 2),
    ("json_remove", _DOCUMENT, "$.a"), ("json_remove", _DOCUMENT, "$.b[1]"), ("json_remove", _DOCUMENT, "$.x"), ("json_remove", _DOCUMENT, "$"), ("json_remove", _DOCUMENT, "$.a", "$.b"), ("json_remove", _DOCUMENT, "$.d.c"), ("json_remove", "[1, 2, 3]", "$[0]", "$[0]"), ("json_remove", None, "$.a"), ("json_remove", _DOCUMENT, None), ("json_remove", _DOCUMENT, "$.*"),
    ("json_merge_preserve", "[1, 2]", "[true, false]"), ("json_merge_preserve", '{"name": "x"}', '{"id": 47}'), ("json_merge_preserve", "1", "true"), ("json_merge_preserve", "[1, 2]", '{"id": 47}'), ("json_merge_preserve", '{"a": 1, "b": 2}', '{"a": 3, "c": 4}'), ("json_merge_preserve", '{"a": 1, "b": 2}', '{"a": 3, "c": 4}', '{"a": 5, "d": 6}'), ("json_merge_preserve", "1", None), ("json_merge_preserve", '{"a": [1]}', '{"a": {"b": 1}}'), ("json_merge_preserve", "x", "1"),
    ("json_merge_patch", "[1, 2]", "[true, false]"), ("json_merge_patch", '{"name": "x"}', '{"id": 47}'), ("json_merge_patch", "1", "true"), ("json_merge_patch", "[1, 2]", '{"id": 47}'), ("json_merge_patch", '{"a": 1, "b": 2}', '{"a": 3, "c": 4}'), ("json_merge_patch", '{"a": 1, "b": 2}', '{"b": null}'), ("json_merge_patch", '{"a": {"x": 1}}', '{"a": {"y": 2}}'), ("json_merge_patch", None, '{"a": 1}'), ("json_merge_patch", '{"a": 1}', None), ("json_merge_patch", '{"a": 1}', '{"b": {"c": null, "d": 1}}'), ("json_merge_patch", None, "[1]"),
    ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "one", "abc"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "abc"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "ghi"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "10"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "%b%"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "%b%", None, "$[0]"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "10", None, "$**.k"), ("json_search", '["abc", [{"k": "10"}, "def"], {"x": "abc"}, {"y": "bcd"}]', "all", "%b%", "", "$[3]"), ("json_search", '{"a b": "x"}', "one", "x"), ("json_search", None, "one", "x"), ("json_search", '["a%c"]', "one", "a|%c", "|"), ("json_search", '["a_c", "abc"]', "all", "a\\_c"), ("json_search", '["x"]', "any", "x"), ("json_search", '[1, "1"]', "all", "1"),
    *(("json_overlaps", left, right) for left in ("[1, 3, 5]", '{"a": 1, "b": 2}', "1", '"x"', "[[1], 2]") for right in ("[2, 5]", "[2, 4]", '{"a": 1}', '{"a": 2, "c": 1}', "1", "5", "[1]", "[[1]]", '"x"')),
)  # fmt: skip

_UNCHANGED = "MySQL ignores a path that finds nothing, MariaDB returns NULL"
_TYPE = "MySQL tells integers of 64 bits from doubles"

DIFFERENCES: dict[Case, str] = {
    ("json_extract", _DOCUMENT, "$ . a"): "MySQL allows spaces between the parts of a path",
    ("json_extract", _DOCUMENT, "$.*"): "MySQL orders keys by length",
    ("json_extract", _DOCUMENT, "$[last]"): "MySQL takes what is no array for an array of one",
    ("json_type", "1e2"): _TYPE,
    ("json_type", "18446744073709551615"): _TYPE,
    ("json_type", "18446744073709551616"): _TYPE,
    ("json_valid", 1): "in MySQL only text can be valid",
    ("json_contains", _DOCUMENT, "1", "$.x"): "NULL in MySQL where the path finds nothing",
    **{("json_array_append", _DOCUMENT, path, 9): _UNCHANGED for path in ("$.z", "$.b[3]", "$.b[9]", "$.b[2].z", "$.x.y", "$.a.b")},
    **{("json_array_append", "[1, [2, 3]]", path, "x"): _UNCHANGED for path in ("$[2]", "$[1][5]", "$[5][0]")},
    ("json_array_insert", "[1, [2, 3]]", "$[last]", "x"): "MySQL inserts before the cell that is named",
    ("json_search", '{"a b": "x"}', "one", "x"): "MySQL quotes a key that is no identifier",
    ("json_search", '[1, "1"]', "all", "1"): "MySQL searches strings only",
}
"""Where MySQL 8 differs from MariaDB, and how; we follow MySQL."""

_NO_DOCUMENTS = ("x", "", '"', "[1", "1 2", '{"a"}', "nul")

ERRORS: dict[Case, int] = {
    **{("json_extract", _DOCUMENT, path): 3143 for path in _BAD_PATHS},
    **{(name, value): 3141 for name in ("json_type", "json_depth", "json_length", "json_keys") for value in _NO_DOCUMENTS},
    ("json_length", _DOCUMENT, "$.*"): 3149,
    ("json_object", None, 1): 3158,
    ("json_object", "a"): 1582,
    ("json_set", _DOCUMENT, "$.a"): 1582,
    ("json_contains", _DOCUMENT, "1", "$.*"): 3149,
    ("json_contains", "x", "1"): 3141,
    ("json_contains_path", _DOCUMENT, "x", "$.a"): 3154,
    **{
        (name, _DOCUMENT, path, 9): 3143 if path == "x" else 3149
        for name in ("json_set", "json_insert", "json_replace", "json_array_append")
        for path in ("$.*", "$**.c", "x")
    },
    ("json_array_insert", "[1]", "$.a", 1): 3165,
    ("json_array_insert", "[1]", "$", 1): 3165,
    ("json_remove", _DOCUMENT, "$"): 3153,
    ("json_remove", _DOCUMENT, "$.*"): 3149,
    ("json_merge_preserve", "x", "1"): 3141,
    ("json_search", '["x"]', "any", "x"): 3154,
    ("json_unquote", '"a\\"'): 3141,
}
"""What MySQL refuses, and with which error; MariaDB mostly returns NULL and a warning."""
