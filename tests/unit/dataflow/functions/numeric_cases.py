"""Calls of the functions on numbers whose answers are worth comparing."""

from __future__ import annotations

from decimal import Decimal

from tests.unit.dataflow.functions.oracle import Case, clock, day, unsigned

CASES: tuple[Case, ...] = (
    ("abs", -5), ("abs", 0), ("abs", Decimal("-1.50")), ("abs", -1.5), ("abs", "-3x"), ("abs", None), ("abs", -9223372036854775808), ("abs", unsigned(18446744073709551615)), ("abs", 9223372036854775807),
    ("abs", day("2020-01-02")),
    ("sign", -5), ("sign", 0), ("sign", Decimal("0.1")), ("sign", -0.0), ("sign", "-1x"), ("sign", None),
    ("ceil", Decimal("1.23")), ("ceiling", Decimal("-1.23")), ("ceil", 5), ("ceil", 1.5), ("ceil", -1.5), ("ceil", "1.2"), ("ceil", None), ("ceil", Decimal("12345678901234567890.5")), ("ceil", Decimal("-0.5")), ("ceil", Decimal("9999999999999999.9")),
    ("floor", Decimal("1.23")), ("floor", Decimal("-1.23")), ("floor", 5), ("floor", 1.5), ("floor", -1.5), ("floor", "1.2x"), ("floor", None), ("floor", Decimal("-12345678901234567890.5")), ("floor", unsigned(18446744073709551615)), ("floor", 1e20),
    ("round", Decimal("-1.23")), ("round", Decimal("-1.58")), ("round", Decimal("1.58")), ("round", Decimal("1.298"), 1), ("round", Decimal("1.298"), 0), ("round", Decimal("23.298"), -1), ("round", Decimal("150.000"), 2), ("round", Decimal("150"), 2),
    ("round", Decimal("2.5")), ("round", Decimal("-2.5")), ("round", Decimal("0.5")), ("round", Decimal("99.995"), 2), ("round", Decimal("999.9"), 0), ("round", Decimal("5"), -1), ("round", Decimal("4.9"), -1), ("round", Decimal("1.005"), 2), ("round", Decimal("-0.4")),
    ("round", Decimal("123.456"), -2), ("round", Decimal("123.456"), -3), ("round", Decimal("523.456"), -3), ("round", Decimal("123.456"), -100), ("round", Decimal("0.00000000000000000000000000000000001"), 40),
    ("round", Decimal("12345678901234567890123456789012345678901234567890.123"), 1),
    ("round", 2.5), ("round", 3.5), ("round", -2.5), ("round", 1.005, 0), ("round", 25.0, -1), ("round", 35.0, -1), ("round", 1e20, -1), ("round", 1e308, 5), ("round", 1.5e300, -400), ("round", 0.5), ("round", 1.5),
    ("round", 15, -1), ("round", 25, -1), ("round", -25, -1), ("round", 24, -1), ("round", 15, 2), ("round", 15), ("round", 55, -2), ("round", 49, -2), ("round", 5, -20), ("round", unsigned(18446744073709551615), 0), ("round", 1234567890123456789, -5),
    ("round", -9223372036854775807, -2),
    ("round", "2.5"), ("round", "2.4x"), ("round", None, 1), ("round", Decimal("1.5"), None), ("round", "abc"), ("round", Decimal("1.25"), "1"),
    ("truncate", Decimal("1.223"), 1), ("truncate", Decimal("1.999"), 1), ("truncate", Decimal("1.999"), 0), ("truncate", Decimal("-1.999"), 1), ("truncate", 122, -2), ("truncate", -199, -2), ("truncate", Decimal("10.28"), -1), ("truncate", Decimal("99.99"), -2),
    ("truncate", 1.999, 0), ("truncate", -1.999, 0), ("truncate", 123.0, -1), ("truncate", 5, 3), ("truncate", None, 1), ("truncate", unsigned(18446744073709551615), -1), ("truncate", 5, -30), ("truncate", "12.9", 0), ("truncate", Decimal("-0.9"), 0),
    ("format", Decimal("12332.123456"), 4), ("format", Decimal("12332.1"), 4), ("format", Decimal("12332.2"), 0), ("format", Decimal("12332.2"), 2, "de_DE"), ("format", 1234567, 2), ("format", -1234567, 2), ("format", 999, 0), ("format", 1000, 0), ("format", -1000, 1),
    ("format", Decimal("-0.5"), 0), ("format", Decimal("0.5"), 0), ("format", 2.5, 0), ("format", 3.5, 0), ("format", "1234.5678", 2), ("format", "abc", 2), ("format", None, 2), ("format", 1, None), ("format", Decimal("12.5"), -1), ("format", Decimal("1.5"), 31), ("format", 1e20, 2), ("format", 0, 2),
    ("format", Decimal("12332.2"), 2, "fr_FR"), ("format", Decimal("12332.2"), 2, "ru_RU"), ("format", Decimal("12332.2"), 2, "de_CH"), ("format", Decimal("12332.2"), 2, "xx_XX"), ("format", Decimal("12332.2"), 2, None), ("format", Decimal("123456789.2"), 2, "es_ES"), ("format", Decimal("123456789.2"), 2, "sv_SE"),
    ("format", Decimal("123456789.2"), 2, "pl_PL"), ("format", Decimal("123456789.2"), 2, "it_IT"), ("format", Decimal("123456789.2"), 2, "pt_BR"), ("format", Decimal("123456789.2"), 2, "pt_PT"), ("format", Decimal("123456789.2"), 2, "nl_NL"), ("format", Decimal("123456789.2"), 2, "da_DK"), ("format", Decimal("123456789.2"), 2, "nb_NO"),
    ("format", Decimal("123456789.2"), 2, "fi_FI"), ("format", Decimal("123456789.2"), 2, "cs_CZ"), ("format", Decimal("123456789.2"), 2, "hu_HU"), ("format", Decimal("123456789.2"), 2, "tr_TR"), ("format", Decimal("123456789.2"), 2, "el_GR"), ("format", Decimal("123456789.2"), 2, "ja_JP"), ("format", Decimal("123456789.2"), 2, "uk_UA"),
    ("format", Decimal("123456789.2"), 2, "de_AT"), ("format", Decimal("123456789.2"), 2, "en_GB"), ("format", Decimal("123456789.2"), 2, "ro_RO"), ("format", Decimal("123456789.2"), 2, "sk_SK"), ("format", Decimal("123456789.2"), 2, "id_ID"), ("format", Decimal("123456789.2"), 2, "vi_VN"), 
    ("pow", 2, 10), ("pow", 2, -2), ("pow", 0, 0), ("pow", -8, Decimal("0.5")), ("pow", 10, 400), ("power", "2", 3), ("pow", None, 1), ("pow", 0, -1), ("pow", 2.5, 2),
    ("sqrt", 4), ("sqrt", 2), ("sqrt", -1), ("sqrt", None), ("sqrt", "16x"), ("exp", 2), ("exp", -2), ("exp", 0), ("exp", 1000), ("exp", None), ("exp", -1000),
    ("ln", 2), ("ln", 0), ("ln", -2), ("log", 2), ("log", 2, 65536), ("log", 10, 100), ("log", 1, 100), ("log", 0, 1), ("log", -1, 2), ("log", 2, 0), ("log2", 65536), ("log2", -100), ("log10", 2), ("log10", 100), ("log10", 0), ("log10", 1000), ("log2", 10), ("log", None, 2),
    ("pi",), ("sin", 1), ("cos", 1), ("tan", 1), ("cot", 12), ("cot", 0), ("asin", Decimal("0.2")), ("asin", "foo"), ("asin", 2), ("acos", 1), ("acos", Decimal("1.0001")), ("acos", 0), ("atan", 2), ("atan", -2), ("atan", -2, 2), ("atan2", 1, 0), ("atan2", 0, 0), ("atan", None), ("sin", "x"),
    ("radians", 90), ("degrees", 1), ("degrees", 3.141592653589793), ("radians", None), ("degrees", 1e308),
    ("bit_count", 29), ("bit_count", -1), ("bit_count", "7"), ("bit_count", None), ("bit_count", 0), ("bit_count", unsigned(18446744073709551615)), ("bit_count", Decimal("6.6")), ("bit_count", "x"),
    ("crc32", clock("10:00:00")),
)  # fmt: skip

DIFFERENCES: dict[Case, str] = {
    ("floor", 1e20): "in MySQL 8 a double stays a double without fixed digits",
    ("round", 1e20, -1): "in MySQL 8 a double stays a double without fixed digits",
    ("round", 1e308, 5): "in MySQL 8 a double stays a double without fixed digits",
    ("round", Decimal("0.00000000000000000000000000000000001"), 40): "MySQL 8 adds no digits to a DECIMAL",
    ("round", Decimal("150"), 2): "MySQL 8 adds no digits to a DECIMAL",
    ("format", Decimal("1.5"), 31): "MySQL allows 30 digits, MariaDB 38",
}
"""Where MySQL 8 differs from MariaDB, and how; we follow MySQL."""
