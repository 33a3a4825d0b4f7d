"""MariaDB's test files: how they are read, and that no more of their statements differ than is written down.

`known.toml` has the differences of each file, as numbers that may only shrink; those with a reason are not among them but
in `apart.toml`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.compatibility.mariadb_test.comparison import Kind
from tests.compatibility.mariadb_test.dialogue import OF_VIEWS
from tests.compatibility.mariadb_test.document import DIFFERENT, known_counts
from tests.compatibility.mariadb_test.language import Command, Reader
from tests.compatibility.mariadb_test.run import (
    INCOMPARABLE,
    FileReport,
    Options,
    chosen_files,
    compare_files,
)

SAMPLE = ("alias", "case", "having", "limit", "null_key", "truncate", "union_innodb", "update_innodb")


def unexplained(report: FileReport) -> list[str]:
    """What differs more often than is known."""
    known = known_counts().get(report.name, {})
    found = Counter(each.kind for each in report.verdicts if each.reason != OF_VIEWS)
    more = [kind for kind in DIFFERENT if found[kind] > known.get(kind.value, 0)]
    return [
        f"{report.name}: {report.counts[kind]} × {kind}, known are {known.get(kind.value, 0)}\n"
        + "\n".join(f"  {each.place} {each.statement}\n    {each.expected}\n    {each.found}" for each in report.verdicts if each.kind is kind)
        for kind in more
    ]


def test_a_sample_of_mariadb_s_files_differs_no_more_than_is_known() -> None:
    problems = [line for report in compare_files(SAMPLE, Options(), 1) for line in unexplained(report)]
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("options", [Options(repeats=3), Options(workers=2)], ids=["asked three times", "two workers"])
def test_all_of_mariadb_s_files_differ_no_more_than_is_known(options: Options) -> None:
    measured = [name for name in chosen_files() if name in known_counts()]
    problems = [line for report in compare_files(measured, options, 2) for line in unexplained(report)]
    assert not problems, "\n".join(problems)


def test_no_kind_of_difference_is_forgotten() -> None:
    assert {*DIFFERENT, *INCOMPARABLE, Kind.SAME} == set(Kind)


def test_files_are_read_as_mysqltest_reads_them() -> None:
    text = """# a comment; it says nothing
--error 1064
SELECT 'a;b', "it's";  select 2 ;
let $i = 3;
while ($i)
{
  eval INSERT INTO t VALUES ($i);
  dec $i;
}
delimiter |;
CREATE PROCEDURE p() BEGIN SELECT 1; END|
delimiter ;|
--write_file $file STOP
not; a statement
STOP
-- an unknown word is a comment
if (`SELECT 1`) { SELECT 3; }
"""
    assert list(Reader(text).commands()) == [
        Command("error", "1064", 2),
        Command("", "SELECT 'a;b', \"it's\"", 3),
        Command("", "select 2", 3),
        Command("let", "$i = 3", 4),
        Command("while", "$i", 5, (Command("eval", "INSERT INTO t VALUES ($i)", 7), Command("dec", "$i", 8))),
        Command("", "CREATE PROCEDURE p() BEGIN SELECT 1; END", 11),
        Command("write_file", "$file STOP", 13, lines="not; a statement\n"),
        Command("if", "`SELECT 1`", 17, (Command("", "SELECT 3", 17),)),
    ]
