"""Random calls: every function with arguments that are likely to meet its corners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

from tests.unit.dataflow.functions.oracle import Case, Unit, clock, day, moment

Make = Callable[[Random], Any]

_LETTERS = "abcABC ,.xyz019éÀ€ß😀%_-'\\\""
_UNITS = ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_COMPOSITES = ("DAY_HOUR", "DAY_SECOND", "HOUR_MINUTE", "MINUTE_SECOND", "YEAR_MONTH", "SECOND_MICROSECOND", "DAY_MICROSECOND")


def string(random: Random) -> str:
    return "".join(random.choice(_LETTERS) for _ in range(random.choice((0, 1, 2, 3, 5, 9))))


def ascii_string(random: Random) -> str:
    return "".join(random.choice("abcABC ,.xyz019-") for _ in range(random.choice((0, 1, 2, 3, 5, 9))))


def word(random: Random) -> str:
    """Letters, which all collations order alike."""
    return "".join(random.choice("abcABCxyz") for _ in range(random.randrange(4)))


def short(random: Random) -> str:
    return "".join(random.choice("abA,.é") for _ in range(random.choice((0, 1, 1, 1, 2))))


def blob(random: Random) -> bytes:
    return bytes(random.choice((0, 1, 32, 65, 97, 128, 255)) for _ in range(random.randrange(5)))


def small(random: Random) -> int:
    return random.choice((*range(-4, 12), 20, 100, -100))


def integer(random: Random) -> int:
    return random.choice((small(random), random.randrange(-(10**6), 10**6), random.randrange(-(1 << 63), 1 << 63)))


def exact(random: Random) -> Decimal:
    digits = random.choice((1, 3, 6, 12, 20))
    scale = random.randrange(0, min(digits, 8) + 1)
    return Decimal(random.randrange(-(10**digits), 10**digits)).scaleb(-scale)


def real(random: Random) -> float:
    return random.choice((float(small(random)) / 2, random.uniform(-1000, 1000), random.uniform(-1, 1) * 10 ** random.randrange(-20, 25)))


def number(random: Random) -> Any:
    return random.choice((integer, exact, real))(random)


def anything(random: Random) -> Any:
    return random.choice((string, string, small, exact, a_day, a_moment, nothing))(random)


def nothing(random: Random) -> None:
    return None


def maybe(make: Make) -> Make:
    """Sometimes NULL."""
    return lambda random: None if random.random() < 0.04 else make(random)


def _date(random: Random) -> str:
    year = random.choice((1, 1000, 1969, 1970, 1999, 2000, 2019, 2020, 2021, 2024, 9999, random.randrange(1000, 9999)))
    month = random.choice((1, 2, 12, random.randrange(1, 13)))
    last = {2: 28, 4: 30, 6: 30, 9: 30, 11: 30}.get(month, 31)
    return f"{year:04d}-{month:02d}-{random.choice((1, last, random.randrange(1, last + 1))):02d}"


def _time(random: Random) -> str:
    fraction = random.choice(("", "", f".{random.randrange(10)}", f".{random.randrange(10**6):06d}"))
    return f"{random.choice((0, 12, 23, random.randrange(24))):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}{fraction}"


def a_day(random: Random) -> Any:
    return day(_date(random))


def a_moment(random: Random) -> Any:
    return moment(f"{_date(random)} {_time(random)}")


def a_near_moment(random: Random) -> Any:
    """So that two of them differ by no more than a TIME can hold."""
    return moment(f"2020-02-{random.randrange(20, 30)} {_time(random)}")


def a_clock(random: Random) -> Any:
    return clock(f"{random.choice(('', '-'))}{_time(random)}")


def date_like(random: Random) -> Any:
    kind = random.randrange(5)
    if kind == 0:
        return _date(random)
    if kind == 1:  # MySQL writes all six digits of a fraction, MariaDB as many as it was given
        return f"{_date(random)} {_time(random)[:8]}"
    if kind == 2:
        return int(_date(random).replace("-", ""))
    return random.choice((a_day, a_moment))(random)


def time_like(random: Random) -> Any:
    return random.choice((a_clock, lambda r: _time(r), lambda r: f"-{_time(r)}", a_moment))(random)


def layout(random: Random) -> str:
    return " ".join("%" + random.choice("abcDdefHhIijklMmprSsTUuVvWwXxYy%q") for _ in range(random.randrange(1, 5)))


def unit(random: Random) -> Unit:
    return Unit(random.choice(_UNITS))


def composite(random: Random) -> Unit:
    return Unit(random.choice(_COMPOSITES))


def amount(random: Random) -> str:
    return random.choice("- ") + random.choice(":. -").join(str(random.randrange(70)) for _ in range(random.randrange(1, 4)))


def base(random: Random) -> int:
    return random.choice((2, 8, 10, 16, 36, -2, -10, -16, -36, 0, 1, 37, 7))


def digits(random: Random) -> str:
    return random.choice(("", "-", " ")) + "".join(random.choice("0123456789abcdefXYZ") for _ in range(random.randrange(18)))


def json_text(random: Random, depth: int = 2) -> str:
    kind = random.randrange(7 if depth else 5)
    if kind == 5:
        return "[" + ", ".join(json_text(random, depth - 1) for _ in range(random.randrange(4))) + "]"
    if kind == 6:
        keys = random.sample("abc", random.randrange(4))
        return "{" + ", ".join(f'"{key}": {json_text(random, depth - 1)}' for key in sorted(keys)) + "}"
    return random.choice(("1", "2", "2.5", "true", "null", '"a"', '"b c"'))


def flat_json(random: Random) -> str:
    """MariaDB's JSON_OVERLAPS loses its way in nested objects."""
    return json_text(random, 1)


def json_path(random: Random) -> str:
    legs = (".a", ".b", ".c", "[0]", "[1]", "[2]")
    return "$" + "".join(random.choice(legs) for _ in range(random.randrange(4)))


SHAPES: tuple[tuple[str, tuple[Make, ...]], ...] = (
    ("concat", (anything, anything)), ("concat", (string, blob)), ("concat_ws", (short, anything, anything, anything)), ("length", (anything,)), ("char_length", (string,)), ("lower", (string,)), ("upper", (string,)),
    ("substring", (string, small)), ("substring", (string, small, small)), ("substring", (blob, small, small)), ("left", (string, small)), ("right", (string, small)), ("substring_index", (string, short, small)), ("substring_index", (blob, blob, small)),
    ("lpad", (string, small, short)), ("rpad", (string, small, short)), ("trim", (string,)), ("trim", (string, short)), ("trim_leading", (string, short)), ("trim_trailing", (string, short)), ("ltrim", (string,)), ("rtrim", (string,)),
    ("replace", (string, short, short)), ("insert", (string, small, small, short)), ("reverse", (string,)), ("repeat", (short, small)), ("instr", (ascii_string, short)), ("locate", (short, ascii_string, small)), ("find_in_set", (short, ascii_string)),
    ("elt", (small, anything, anything)), ("field", (short, short, short, short)), ("field", (small, small, small)), ("make_set", (small, short, short, short)), ("export_set", (small, short, short, short, small)), ("ascii", (string,)), ("ord", (string,)), ("char", (integer, small)),
    ("hex", (string,)), ("hex", (integer,)), ("hex", (exact,)), ("unhex", (digits,)), ("to_base64", (blob,)), ("quote", (string,)), ("soundex", (ascii_string,)), ("bin", (integer,)), ("oct", (digits,)), ("conv", (digits, base, base)), ("conv", (integer, base, base)), ("strcmp", (word, word)), ("md5", (string,)), ("crc32", (anything,)), ("inet_ntoa", (integer,)),
    ("abs", (number,)), ("sign", (number,)), ("ceil", (exact,)), ("floor", (exact,)), ("ceil", (integer,)), ("round", (exact,)), ("round", (exact, small)), ("round", (integer, small)), ("truncate", (exact, small)), ("truncate", (integer, small)), ("format", (integer, lambda r: r.randrange(-2, 31))), ("format", (exact, lambda r: r.randrange(-2, 9))), ("format", (lambda r: r.uniform(1, 1e9), lambda r: r.randrange(-2, 9))), ("bit_count", (integer,)), ("sqrt", (number,)), ("ln", (number,)), ("log10", (number,)), ("sin", (small,)), ("atan", (number,)), ("degrees", (small,)), ("radians", (number,)), ("pow", (small, small)),
    ("year", (date_like,)), ("month", (date_like,)), ("day", (date_like,)), ("quarter", (date_like,)), ("weekday", (date_like,)), ("dayofweek", (date_like,)), ("dayofyear", (date_like,)), ("dayname", (date_like,)), ("last_day", (date_like,)), ("to_days", (date_like,)), ("to_seconds", (date_like,)), ("week", (date_like, small)), ("yearweek", (date_like, small)), ("hour", (time_like,)), ("minute", (time_like,)), ("second", (time_like,)), ("microsecond", (time_like,)), ("time", (time_like,)), ("date", (date_like,)),
    ("date_format", (date_like, layout)), ("time_format", (time_like, lambda r: "%H %i %s %f %h %p %T %r %k")), ("date_add", (date_like, small, unit)), ("date_sub", (date_like, small, unit)), ("date_add", (a_moment, integer, unit)), ("date_add", (a_day, amount, composite)), ("date_sub", (a_moment, amount, composite)), ("timestampadd", (unit, small, date_like)), ("timestampdiff", (unit, date_like, date_like)), ("datediff", (date_like, date_like)),
    ("addtime", (a_moment, time_like)), ("addtime", (a_clock, time_like)), ("subtime", (a_clock, time_like)), ("timediff", (a_near_moment, a_near_moment)), ("timediff", (a_clock, a_clock)), ("timestamp", (date_like, time_like)), ("extract", (unit, a_moment)), ("extract", (composite, a_moment)), ("makedate", (lambda r: r.randrange(1, 9999), lambda r: r.randrange(1, 800))), ("maketime", (small, small, small)), ("from_days", (lambda r: r.randrange(366, 3652424),)), ("sec_to_time", (small,)), ("sec_to_time", (lambda r: r.randrange(-5000000, 5000000),)), ("period_add", (lambda r: r.randrange(1970, 2060) * 100 + r.randrange(1, 13), small)), ("from_unixtime", (lambda r: r.randrange(0, 1 << 31),)), ("unix_timestamp", (lambda r: moment(f"20{r.randrange(10, 38)}-0{r.randrange(1, 9)}-1{r.randrange(10)} {_time(r)}"),)),
    ("json_extract", (json_text, json_path)), ("json_contains", (json_text, json_text)), ("json_length", (json_text,)), ("json_depth", (json_text,)), ("json_type", (json_text,)), ("json_set", (json_text, json_path, small)), ("json_insert", (json_text, json_path, small)), ("json_replace", (json_text, json_path, short)), ("json_remove", (json_text, lambda r: json_path(r) + ".a")), ("json_merge_patch", (json_text, json_text)), ("json_merge_preserve", (json_text, json_text)), ("json_overlaps", (flat_json, flat_json)), ("json_keys", (json_text,)),
)  # fmt: skip


def cases(seed: int, count: int) -> Iterator[Case]:
    random = Random(seed)
    for position in range(count):
        name, makers = SHAPES[position % len(SHAPES)]
        case = (name, *(make(random) if make in (unit, composite) else maybe(make)(random) for make in makers))
        if not is_known_difference(case):
            yield case


def is_known_difference(case: Case) -> bool:
    """Where MySQL 8 and MariaDB are known to differ."""
    match case:
        case ("round" | "truncate", Decimal() as value, int(digits)):
            return digits > -int(value.as_tuple().exponent)  # MySQL adds no digits to a DECIMAL
        case ("replace", _, "", None):
            return True  # MySQL: NULL, as for any NULL argument
        case ("date_add" | "date_sub", int() | str(), 0, Unit("MICROSECOND")) | ("timestampadd", Unit("MICROSECOND"), 0, int() | str()):
            return True  # MySQL writes a fraction into text only if there is one
    return False
