"""What shows of PARTITION BY beside the rows: the definition, and information_schema."""

from __future__ import annotations

from typing import Any

import pytest

DEFINITIONS = (
    "PARTITION BY RANGE (`a`)\n(PARTITION p0 VALUES LESS THAN (10) COMMENT = 'it\\'s' ENGINE = InnoDB,\n"
    " PARTITION `p-1` VALUES LESS THAN MAXVALUE ENGINE = InnoDB)",
    "PARTITION BY LIST (`a`)\n(PARTITION p0 VALUES IN (1,NULL) ENGINE = InnoDB)",
    "PARTITION BY HASH (`a`)\nPARTITIONS 4",
    "PARTITION BY LINEAR KEY (a,b)\nPARTITIONS 2",
    "PARTITION BY RANGE (`a`)\nSUBPARTITION BY HASH (`b`)\nSUBPARTITIONS 2\n(PARTITION p0 VALUES LESS THAN (1) ENGINE = InnoDB)",
)
COLUMNS = "PARTITION BY RANGE  COLUMNS(a,b)\n(PARTITION p0 VALUES LESS THAN (1,MAXVALUE) ENGINE = InnoDB)"


@pytest.mark.parametrize("definition", [f"/*!50100 {each} */" for each in DEFINITIONS] + [f"/*!50500 {COLUMNS} */"])
def test_a_definition_is_shown_as_mysql_shows_it_and_read_back(run: Any, definition: str) -> None:
    run("DROP TABLE IF EXISTS divided")
    run(f"CREATE TABLE divided (a INT, b INT) {definition}")
    [(_, text)] = run("SHOW CREATE TABLE divided")
    assert text.endswith("\n" + definition)
    run("ALTER TABLE divided ADD COLUMN c INT FIRST")
    assert run("SHOW CREATE TABLE divided")[0][1].endswith("\n" + definition)


def test_information_schema_lists_partitions_and_subpartitions(run: Any) -> None:
    run("DROP TABLE IF EXISTS divided")
    run(
        "CREATE TABLE divided (a INT, b INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 2 "
        "(PARTITION p0 VALUES LESS THAN (2 * 3), PARTITION p1 VALUES LESS THAN MAXVALUE)"
    )
    found = run(
        "SELECT partition_name, subpartition_name, partition_ordinal_position, partition_method, partition_expression, "
        "subpartition_method, partition_description FROM information_schema.partitions WHERE table_name = 'divided' ORDER BY 3, 2"
    )
    assert found == [
        ("p0", "p0sp0", 1, "RANGE", "`a`", "HASH", "6"),
        ("p0", "p0sp1", 1, "RANGE", "`a`", "HASH", "6"),
        ("p1", "p1sp0", 2, "RANGE", "`a`", "HASH", "MAXVALUE"),
        ("p1", "p1sp1", 2, "RANGE", "`a`", "HASH", "MAXVALUE"),
    ]
    run("ALTER TABLE divided REMOVE PARTITIONING")
    assert run("SELECT partition_name, partition_method FROM information_schema.partitions WHERE table_name = 'divided'") == [(None, None)]
