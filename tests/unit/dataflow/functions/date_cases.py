"""Calls of the functions on dates and times whose answers are worth comparing."""

from __future__ import annotations

from decimal import Decimal

from tests.unit.dataflow.functions.oracle import Case, Unit, clock, day, moment

_BORDERS = ("2019-12-29", "2019-12-31", "2020-01-01", "2020-01-05", "2020-12-31", "2021-01-01", "2021-01-03", "2021-01-04", "2016-01-01", "2017-01-01", "2018-12-31", "2023-01-01", "2024-12-30", "1999-01-02", "0001-01-01", "9999-12-31")
_UNITS = ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "SECOND_MICROSECOND", "MINUTE_MICROSECOND", "MINUTE_SECOND", "HOUR_MICROSECOND", "HOUR_SECOND", "HOUR_MINUTE", "DAY_MICROSECOND", "DAY_SECOND", "DAY_MINUTE", "DAY_HOUR", "YEAR_MONTH")
_SIMPLE = _UNITS[:9]
_PARTS = ("year", "month", "day", "dayofmonth", "quarter", "weekday", "dayofweek", "dayofyear", "dayname", "monthname", "last_day", "to_days", "weekofyear", "hour", "minute", "second", "microsecond", "date", "to_seconds", "week", "yearweek")
_VALUES = (
    "2020-02-29", "2020-02-29 10:20:30.123456", "20200229", "20200229102030", 20200229, 20200229102030, "2020-02-30", "abc", "", None, "2020-13-01", "20-1-2", "2020/1/2", "1999-12-31 23:59:59.999999",
    day("2020-02-29"), moment("2020-02-29 10:20:30.123456"), moment("2020-02-29 10:20:30"), "0000-00-00", "2020-00-00", "2020-05-00", "0000-01-01", 0, "10:11:12", 101112, "2020-01-01T10:20:30",
)  # fmt: skip

_FORMATS = ("%a %b %c %D %d %e", "%f %H %h %I %i %j", "%k %l %M %m %p %r", "%S %s %T %U %u %V %v", "%W %w %X %x %Y %y %%", "%q %z %", "", "plain", "%", "%%%Y%%", "é%Yé")

CASES: tuple[Case, ...] = (
    *(("week", value, mode) for value in _BORDERS for mode in range(8)),
    *(("yearweek", value, mode) for value in _BORDERS for mode in (0, 1, 2, 5)),
    ("week", "2020-01-01", 8), ("week", "2020-01-01", -1), ("week", "2020-01-01", None), ("yearweek", None),
    *((name, value) for name in _PARTS for value in _VALUES),
    *((name, value) for name in ("hour", "minute", "second", "microsecond", "time", "time_to_sec") for value in (clock("-10:20:30.5"), clock("838:59:59"), "100:20:30", "1 10:20", "-1:2:3", "12", "1234", "10:60:00", "10:20:30.1234567", 123456, 1234567890, Decimal("101112.5"), "x", None, "2020-01-01 10:20:30", moment("2020-01-01 10:20:30.5"), "10:20", "10.5")),
    *(("date_format", "2020-01-05 15:04:05.000123", layout) for layout in _FORMATS),
    *(("date_format", value, "%a %M %e %Y %j %U %v") for value in _BORDERS),
    ("date_format", "2020-00-00", "%M"), ("date_format", "0000-00-00", "%Y-%m-%d"), ("date_format", "2020-00-05", "%d/%c/%y"), ("date_format", day("2020-02-03"), "%D %H"), ("date_format", None, "%Y"), ("date_format", "2020-01-01", None), ("date_format", "x", "%Y"), ("date_format", "2020-01-11", "%D"), ("date_format", "2020-01-22", "%D"), ("date_format", "2020-01-23", "%D"), ("date_format", "2020-01-31", "%D"), ("date_format", "2020-01-01 00:00:00", "%h %I %l %p %r"), ("date_format", "2020-01-01 12:00:00", "%h %I %l %p %r"), ("date_format", clock("10:20:30"), "%H:%i"),
    ("time_format", "100:00:00", "%H %k %h %I %l"), ("time_format", "10:11:12.5", "%f %s"), ("time_format", "-10:11:12", "%H %i"), ("time_format", "25:00:00", "%r %T %p"), ("time_format", "10:11:12", "%a"), ("time_format", "10:11:12", "%M"), ("time_format", None, "%H"), ("time_format", "10:11:12", ""), ("time_format", clock("-00:00:01"), "%T"), ("time_format", moment("2020-01-01 10:20:30"), "%H.%i"), ("time_format", 101112, "%T"),
    ("str_to_date", "01,5,2013", "%d,%m,%Y"), ("str_to_date", "May 1, 2013", "%M %d,%Y"), ("str_to_date", "a09:30:17", "a%h:%i:%s"), ("str_to_date", "a09:30:17", "%h:%i:%s"), ("str_to_date", "09:30:17a", "%h:%i:%s"), ("str_to_date", "abc", "abc"), ("str_to_date", "9", "%m"), ("str_to_date", "9", "%s"), ("str_to_date", "04/31/2004", "%m/%d/%Y"),
    ("str_to_date", "2020-02-30", "%Y-%m-%d"), ("str_to_date", "10:20", "%H:%i"), ("str_to_date", "2020", "%Y"), ("str_to_date", "1 Jan 2020", "%d %b %Y"), ("str_to_date", "2020-01-01x", "%Y-%m-%d"), ("str_to_date", "200442 Monday", "%X%V %W"), ("str_to_date", "10:20:30.5 PM", "%h:%i:%s.%f %p"), ("str_to_date", "366 2020", "%j %Y"), ("str_to_date", "366 2019", "%j %Y"), ("str_to_date", "", "%Y"), ("str_to_date", "70-1-1", "%y-%m-%d"), ("str_to_date", "69-1-1", "%Y-%m-%d"), ("str_to_date", "1st 2 2020", "%D %m %Y"), ("str_to_date", "2020-01-01", "%Y-%m-%d %H:%i"), ("str_to_date", "13 AM", "%h %p"), ("str_to_date", "12 AM", "%h %p"), ("str_to_date", "12 PM", "%h %p"), ("str_to_date", "10:11:12 PM", "%r"), ("str_to_date", "23:11:12", "%T"), ("str_to_date", "24:11:12", "%T"), ("str_to_date", "abc12-1-2020", "%@%d-%m-%Y"), ("str_to_date", "..12-1-2020", "%.%d-%m-%Y"), ("str_to_date", "0000-00-00", "%Y-%m-%d"), ("str_to_date", "2020 1 3", "%Y %U %w"), ("str_to_date", "2020 1 3", "%Y %u %w"), ("str_to_date", "2020 1 3", "%x %v %w"), ("str_to_date", "2020 1 3", "%X %v %w"), ("str_to_date", "2020 0 0", "%Y %U %w"), ("str_to_date", "20201231235959", "%Y%m%d%H%i%s"), ("str_to_date", "2020-12-31 23:59:59.123", "%Y-%m-%d %H:%i:%s.%f"), ("str_to_date", " 2020 - 1 - 1", "%Y-%m-%d"), ("str_to_date", "2020-1-1 10", "%Y-%m-%d %k"), ("str_to_date", None, "%Y"), ("str_to_date", "2020", None), ("str_to_date", "10 p.m.", "%h %p"), ("str_to_date", "SEPTEMBER 5 2020", "%M %d %Y"), ("str_to_date", "sep 5 2020", "%b %d %Y"), ("str_to_date", "2020-01-01 25:00:00", "%Y-%m-%d %T"), ("str_to_date", "2020-01-01", "%d"), ("str_to_date", "5 10:20:30", "%d %T"), ("str_to_date", "2020-01-01", "%Y-%m-%d%%"), ("str_to_date", "12:5", "%i:%s"),
    *(("date_add", value, amount, Unit(unit)) for value in ("2020-02-29", day("2020-02-29"), moment("2020-01-31 23:59:59"), moment("2020-12-31 23:59:59.500000")) for unit in _UNITS for amount in (1, -13)),
    *(("date_sub", day("2020-03-31"), amount, Unit(unit)) for unit in _SIMPLE for amount in (1, 100)),
    *(("date_add", day("2020-01-31"), amount, Unit(unit)) for unit in _UNITS for amount in ("1:2", "1 2:3:4.5", "-1:30", "x", "", "1-1", "1.5", "1:2:3:4:5:6", " 2", None)),
    *(("date_add", value, 1, Unit(unit)) for unit in ("DAY", "MONTH", "SECOND", "YEAR") for value in ("9999-12-31", "2020-00-01", "2020-01-00", "0000-00-00", "2020-02-30", "abc", None, 20200101, 20200101102030, "2020-01-01 10:20:30", "2020-01-01 00:00:00", "2020/1/1", "20200101")),
    ("date_add", day("2020-01-01"), Decimal("2.5"), Unit("DAY")), ("date_add", day("2020-01-01"), 2.5, Unit("DAY")), ("date_add", day("2020-01-01"), "2.9", Unit("DAY")), ("date_add", moment("2020-01-01 00:00:00"), Decimal("1.5"), Unit("SECOND")), ("date_add", moment("2020-01-01 00:00:00"), Decimal("-1.5"), Unit("SECOND")), ("date_add", day("2020-01-01"), 100000000, Unit("DAY")), ("date_add", day("2020-01-01"), -100000, Unit("MONTH")), ("date_add", day("2020-01-01"), 9223372036854775807, Unit("YEAR")), ("date_add", day("2020-01-01"), 9223372036854775807, Unit("SECOND")), ("date_sub", day("0001-01-01"), 1, Unit("DAY")), ("date_sub", day("2020-03-31"), 1, Unit("MONTH")), ("date_add", day("2019-02-28"), 1, Unit("YEAR")), ("date_add", day("2020-02-29"), 4, Unit("YEAR")), ("date_add", day("2020-11-30"), 1, Unit("QUARTER")),
    ("date_add", clock("10:00:00"), 1, Unit("HOUR")), ("date_add", clock("23:00:00"), 2, Unit("HOUR")), ("date_add", clock("10:00:00"), Decimal("0.5"), Unit("SECOND")), ("date_sub", clock("10:00:00"), 11, Unit("HOUR")),
    ("adddate", day("2020-01-31"), 31), ("subdate", day("2020-01-31"), 31), ("adddate", "2020-01-31", 1), ("adddate", moment("2020-01-31 10:00:00"), 1), ("adddate", None, 1),
    *(("timestampadd", Unit(unit), 7, value) for unit in _SIMPLE for value in (day("2020-01-31"), moment("2020-01-31 10:20:30.5"))),
    *(("timestampdiff", Unit(unit), start, end) for unit in _SIMPLE for start, end in (("2020-01-31", "2020-02-29"), ("2020-02-29", "2020-01-31"), ("2020-02-29", "2021-02-28"), ("2020-02-29 12:00:00", "2024-02-29 11:59:59.999999"), ("2019-01-01 00:00:00.5", "2020-01-01"), ("2020-01-01", "2020-01-01"), ("x", "2020-01-01"), ("2020-00-01", "2020-01-01"), (None, "2020-01-01"))),
    ("timestampdiff", Unit("MONTH"), day("2020-01-31"), moment("2020-03-31 00:00:00")), ("timestampdiff", Unit("SECOND"), 20200101, 20200102),
    ("datediff", "2007-12-31 23:59:59", "2007-12-30"), ("datediff", "2010-11-30 23:59:59", "2010-12-31"), ("datediff", None, "2020-01-01"), ("datediff", "x", "2020-01-01"), ("datediff", day("2020-03-01"), day("2020-02-01")), ("datediff", "2020-00-01", "2020-01-01"), ("datediff", 20200301, 20200201),
    ("addtime", "2007-12-31 23:59:59.999999", "1 1:1:1.000002"), ("addtime", "01:00:00.999999", "02:00:00.999998"), ("addtime", "23:00", "2:00"), ("addtime", "x", "1:00"), ("addtime", None, "1:00"), ("addtime", clock("10:00:00"), "1:00:00.5"), ("addtime", moment("2020-01-01 10:00:00"), clock("15:00:00")), ("addtime", moment("2020-01-01 10:00:00.5"), "1"), ("addtime", clock("800:00:00"), clock("100:00:00")), ("addtime", day("2020-01-01"), "1:00:00"), ("addtime", "2020-01-01 10:00:00", "1 2:00:00.000001"),
    ("subtime", "2007-12-31 23:59:59.999999", "1 1:1:1.000002"), ("subtime", "01:00:00.999999", "02:00:00.999998"), ("subtime", clock("10:00:00"), clock("11:00:00")), ("subtime", moment("2020-01-01 10:00:00"), "15:00:00"), ("subtime", "10:00", 100),
    ("timediff", "2000-01-01 00:00:00", "2000-01-01 00:00:00.000001"), ("timediff", "2008-12-31 23:59:59.000001", "2008-12-30 01:01:01.000002"), ("timediff", "10:00", "11:00"), ("timediff", "2020-01-01 00:00:00", "10:00:00"), ("timediff", clock("10:00:00"), clock("11:30:00.5")), ("timediff", moment("2020-01-01 10:00:00"), moment("2019-01-01 10:00:00")), ("timediff", None, "1:00"), ("timediff", "x", "1:00"), ("timediff", moment("2020-01-02 10:00:00"), "2020-01-01 10:00:00"), ("timediff", 100, 50), ("timediff", clock("-10:00:00"), clock("10:00:00")),
    ("timestamp", "2003-12-31"), ("timestamp", "2003-12-31 12:00:00", "12:00:00"), ("timestamp", day("2003-12-31")), ("timestamp", "2003-12-31 12:00:00.5"), ("timestamp", None), ("timestamp", "x"), ("timestamp", day("2003-12-31"), clock("25:00:00")), ("timestamp", 20031231), ("timestamp", "2003-12-31", "-1:00"), ("timestamp", moment("2003-12-31 10:00:00.5"), "x"),
    *(("extract", Unit(unit), value) for unit in (*_SIMPLE[:5], *_SIMPLE[6:], *_UNITS[9:]) for value in ("2019-07-02 01:02:03.123456", moment("2019-07-02 01:02:03.1234"), day("2019-07-02"), None, "x", "2019-07-02")),
    *(("extract", Unit(unit), clock("-10:20:30.5")) for unit in ("HOUR", "MINUTE", "SECOND", "MICROSECOND", "HOUR_MINUTE", "HOUR_SECOND", "MINUTE_SECOND", "HOUR_MICROSECOND", "SECOND_MICROSECOND")),
    ("extract", Unit("HOUR_SECOND"), "10:20:30"), ("extract", Unit("HOUR"), "100:20:30"), ("extract", Unit("WEEK"), "2020-01-05"),
    ("makedate", 2011, 31), ("makedate", 2011, 32), ("makedate", 2011, 365), ("makedate", 2014, 365), ("makedate", 2011, 0), ("makedate", 2020, 366), ("makedate", 20, 1), ("makedate", 70, 1), ("makedate", 99, 400), ("makedate", 9999, 366), ("makedate", -1, 1), ("makedate", 10000, 1), ("makedate", None, 1), ("makedate", 2020, -5), ("makedate", "2020", "5x"), ("makedate", 100, 1),
    ("maketime", 12, 15, 30), ("maketime", -1, 2, 3), ("maketime", 900, 1, 1), ("maketime", -900, 1, 1), ("maketime", 1, 60, 1), ("maketime", 1, 1, 60), ("maketime", 1, -1, 1), ("maketime", 1, 2, Decimal("3.5")), ("maketime", 1, 2, Decimal("59.99999999")), ("maketime", 838, 59, 59), ("maketime", 838, 59, Decimal("59.5")), ("maketime", None, 1, 1), ("maketime", 1, 2, -1), ("maketime", 0, 0, 0),
    ("from_days", 730669), ("from_days", 365), ("from_days", 366), ("from_days", 0), ("from_days", -1), ("from_days", 3652424), ("from_days", 3652425), ("from_days", None), ("from_days", 99999999), ("to_days", 950501), ("to_days", "0000-01-01"),
    ("sec_to_time", 2378), ("sec_to_time", -2378), ("sec_to_time", Decimal("3600.5")), ("sec_to_time", 99999999), ("sec_to_time", -99999999), ("sec_to_time", None), ("sec_to_time", "100"), ("sec_to_time", 0), ("sec_to_time", Decimal("0.9999999")), ("sec_to_time", 1.25), ("sec_to_time", Decimal("-0.5")),
    ("time_to_sec", "22:23:00"), ("time_to_sec", "00:39:38"), ("time_to_sec", "-01:00:00"), ("time_to_sec", clock("838:59:59")), ("time_to_sec", None), ("time_to_sec", 100), ("time_to_sec", moment("2020-01-01 01:00:00")),
    ("period_add", 200801, 2), ("period_add", 200812, 1), ("period_add", 9912, 1), ("period_add", 7001, -1), ("period_add", 200801, -13), ("period_add", None, 1), ("period_add", 801, 2), ("period_diff", 200802, 200703), ("period_diff", 9912, 200001), ("period_diff", None, 1), ("period_diff", 200703, 200802), ("period_diff", "200802", 802),
    ("unix_timestamp", "2015-11-13 10:20:19"), ("unix_timestamp", "2015-11-13 10:20:19.012"), ("unix_timestamp", "1970-01-01"), ("unix_timestamp", None), ("unix_timestamp", day("2020-01-01")), ("unix_timestamp", moment("2020-01-01 10:00:00.5")), ("unix_timestamp", 20200101), ("unix_timestamp", "2020-02-30"), ("unix_timestamp", "x"), ("unix_timestamp", moment("1970-01-01 00:00:01")), ("unix_timestamp", moment("2038-01-19 03:14:07")), ("unix_timestamp", "2020-00-01"), ("unix_timestamp", day("1969-12-31")),
    ("from_unixtime", 1447430881), ("from_unixtime", 0), ("from_unixtime", -1), ("from_unixtime", Decimal("1.5")), ("from_unixtime", "1.5"), ("from_unixtime", 1.5), ("from_unixtime", None), ("from_unixtime", 2147483647), ("from_unixtime", 1447430881, "%Y %D %M %h:%i:%s %x"), ("from_unixtime", 0, "%Y"), ("from_unixtime", Decimal("1.9999999")), ("from_unixtime", "x"), ("from_unixtime", 1, None), ("from_unixtime", 99999999999999),
    ("convert_tz", "2004-01-01 12:00:00", "+00:00", "+10:00"), ("convert_tz", "2004-01-01 12:00:00.5", "+05:30", "-03:30"), ("convert_tz", moment("2004-01-01 12:00:00"), "+00:00", "+01:00"), ("convert_tz", None, "+00:00", "+01:00"), ("convert_tz", "x", "+00:00", "+01:00"), ("convert_tz", "2004-01-01", "+00:00", "x"), ("convert_tz", "2004-01-01", "+00:00", "+15:00"), ("convert_tz", "1960-01-01 00:00:00", "+00:00", "+10:00"), ("convert_tz", "2004-01-01 12:00:00", "+00:00", None), ("convert_tz", "0000-00-00", "+00:00", "+01:00"),
    ("get_format", Unit("DATE"), "USA"), ("get_format", Unit("DATETIME"), "EUR"), ("get_format", Unit("TIME"), "INTERNAL"), ("get_format", Unit("DATE"), "x"), ("get_format", Unit("DATE"), None), ("get_format", Unit("TIMESTAMP"), "JIS"), ("get_format", Unit("DATE"), "iso"), ("get_format", Unit("TIME"), "USA"),
)  # fmt: skip

_TIMES = ("hour", "minute", "second", "microsecond", "time", "time_to_sec")
_ZERO = "here sql_mode is not asked: expressions read zero dates as in MySQL without NO_ZERO_DATE"
_INTEGER = "TIME_TO_SEC is an integer in MySQL"
_ROUNDS = "MySQL rounds what is beyond microseconds, MariaDB cuts it off"
_RANGE = "out of the range of TIME: MySQL goes on with the largest, MariaDB with a date or NULL"
_AS_TIME = "MySQL reads the text as a time, as it does for HOUR()"

DIFFERENCES: dict[Case, str] = {
    ("last_day", "2020-05-00"): _ZERO,
    ("date", "0000-00-00"): _ZERO,
    ("date", "2020-00-00"): _ZERO,
    ("date", "2020-05-00"): _ZERO,
    ("date", 0): _ZERO,
    ("from_days", 0): _ZERO,
    **{(name, 20200229): _RANGE for name in _TIMES[:3]},
    ("microsecond", "20200229"): _RANGE,
    **{(name, 1234567890): _RANGE for name in _TIMES},
    ("maketime", 838, 59, Decimal("59.5")): _RANGE,
    ("microsecond", "10:20:30.1234567"): _ROUNDS,
    ("time", "10:20:30.1234567"): _ROUNDS,
    ("maketime", 1, 2, Decimal("59.99999999")): _ROUNDS,
    ("sec_to_time", Decimal("0.9999999")): _ROUNDS,
    ("from_unixtime", Decimal("1.9999999")): _ROUNDS,
    ("time_to_sec", clock("-10:20:30.5")): _INTEGER,
    ("time_to_sec", "10:20:30.1234567"): _INTEGER,
    ("time_to_sec", Decimal("101112.5")): _INTEGER,
    ("time_to_sec", moment("2020-01-01 10:20:30.5")): _INTEGER,
    ("time_to_sec", "10.5"): _INTEGER,
    ("date_format", clock("10:20:30"), "%H:%i"): "a TIME has no date without a clock, so it is NULL here",
    ("date_add", day("2020-01-01"), 9223372036854775807, Unit("YEAR")): "MariaDB overflows",
    **{
        ("extract", Unit(unit), "2019-07-02"): _AS_TIME
        for unit in ("SECOND", "MINUTE", "SECOND_MICROSECOND", "MINUTE_MICROSECOND", "MINUTE_SECOND")
        + ("HOUR_MICROSECOND", "HOUR_SECOND", "HOUR_MINUTE")
    },
    ("extract", Unit("HOUR"), "100:20:30"): "MariaDB counts days beyond 24 hours",
    ("unix_timestamp", "2020-00-01"): "0 in MySQL for what is no moment; NULL in MariaDB",
    ("unix_timestamp", day("1969-12-31")): "0 in MySQL before 1970; NULL in MariaDB",
    ("from_unixtime", "x"): "MariaDB shows no fraction when the text is no number",
}
"""Where MySQL 8 differs from MariaDB, and how; we follow MySQL."""
