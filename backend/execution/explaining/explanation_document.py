"""EXPLAIN FORMAT=JSON: MySQL's document, as far as its words mean something here.

Costs and row estimates are left out, as there are none. How the query is really answered is
under `millrace`: the same tree of steps as in FORMAT=TREE.
"""

from __future__ import annotations

import json
from typing import Any

from backend.execution.explaining.explanation import Explained, ExplainedStep, ExplainedTable


def document_text(found: Explained) -> str:
    block: dict[str, Any] = {"select_id": 1}
    tables = [{"table": _table(use)} for use in found.tables]
    if not tables:
        block["message"] = "No tables used"
    elif len(tables) == 1:
        block |= tables[0]
    else:
        block["nested_loop"] = tables
    block["millrace"] = {"maintained_view": found.view is not None, "plan": _plan(found.step)}
    return json.dumps({"query_block": block}, indent=2, ensure_ascii=False)


def _table(use: ExplainedTable) -> dict[str, Any]:
    table: dict[str, Any] = {"table_name": use.table, "access_type": use.access}
    if use.key is not None:
        table |= {"possible_keys": [use.key], "key": use.key}
    if use.reference is not None:
        table["ref"] = [use.reference]
    if "Using filesort" in use.extra:
        table["using_filesort"] = True
    return table


def _plan(step: ExplainedStep) -> dict[str, Any]:
    plan: dict[str, Any] = {"operation": step.text}
    if step.inputs:
        plan["inputs"] = [_plan(each) for each in step.inputs]
    return plan
