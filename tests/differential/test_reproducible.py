"""What the generators write depends on their seed alone, not on the process that runs them."""

from __future__ import annotations

import os
import subprocess
import sys

DIGEST = """
from hashlib import sha256
from random import Random
from dataflow.errors import MillraceError
from tests.differential import mixed_values, test_columns, test_foreign_keys, test_joined_writes, test_precedence, test_ranges, test_view_writes
from tests.differential.generator import alterations, scenario, transactions
from tests.differential.query_changes import changes, shapes
from tests.differential.query_tables import definitions
from tests.logic import test_maintained_queries
from tests.simulation import test_epochs, test_views
from tests.unit.dataflow.functions.random_cases import cases
from tests.unit.dataflow.random_expressions import Generator

def queries():
    random = Random(1)
    statements, tables = definitions(random)
    yield statements
    for shape in shapes(random, tables, 80):
        yield shape, shape.varied(random), shape.prepared()
    for _ in range(200):
        yield changes(random, tables)

random = Random(2)
expressions = Generator(3)

def expression():
    try:
        return expressions.sample(3).sql
    except MillraceError:
        return ""

ranges = test_ranges.Queries(random, 20)
parts = {
    "queries": queries(),
    "statements": (made for generate in (scenario, transactions, alterations) for seed in range(10) for made in generate(Random(seed), "t", 60)),
    "mixed values": [*mixed_values.definitions(random), *mixed_values.MixedValues(random).statements(200)],
    "columns": (test_columns._query(random) for _ in range(100)),
    "foreign keys": [test_foreign_keys.random_script(random)],
    "joined writes": (test_joined_writes._write(random) for _ in range(50)),
    "view writes": test_view_writes.statements(random, 50),
    "precedence": (test_precedence.expression(random, "") for _ in range(50)),
    "ranges": [*ranges.statements(), *(ranges.change() for _ in range(50))],
    "logic": (test_maintained_queries.change(random) for _ in range(50)),
    "functions": cases(4, 200),
    "expressions": (expression() for _ in range(200)),
    "simulated epochs": [test_epochs.run(1)],
    "simulated views": [test_views.run(1)],
}
for name, made in parts.items():
    print(name, sha256("\\n".join(map(repr, made)).encode()).hexdigest())
"""


def _digests(hash_seed: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", DIGEST], env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True, capture_output=True, text=True
    )
    return run.stdout.splitlines()


def test_generators_depend_on_their_seed_alone() -> None:
    assert _digests("1") == _digests("2")
