"""HTTP/JSON over an engine in the same process: requests, encodings, accounts, errors."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from yarl import URL

from backend.execution.database import Database
from backend.execution.embedded import open_embedded
from backend.http.answers import REQUEST_BYTES_MAX
from backend.http.connections import HttpConnections
from backend.http.interface import Interface
from backend.http.server import application
from controller.sql.account_statements import AccountReader
from controller.sql.settings import DEFAULT_SETTINGS
from controller.sql.text.cursor import TokenReader

ROOT = ("root", "")
PROGRAM = """
    CREATE TABLE shop.sales (id INT AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20), price DECIMAL(10, 2), KEY (item));
    CREATE TABLE shop.secrets (a INT, b VARCHAR(9), c BLOB, PRIMARY KEY (a, b));
    CREATE VIEW shop.totals AS SELECT item, COUNT(*) AS sold, SUM(price) AS taken FROM shop.sales GROUP BY item
"""


class Api:
    """Requests to a server of its own."""

    def __init__(self, engine: Database, client: ClientSession, address: str) -> None:
        self.engine = engine
        self.client = client
        self.address = address

    async def ask(self, method: str, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        """The decoded answer, which must have this status."""
        if body is not None:
            options["data"] = body if isinstance(body, bytes) else json.dumps(body)
            options["headers"] = {"Content-Type": "application/json"} | options.get("headers", {})
        account = options.pop("account", ROOT)
        if account is not None:
            encoded = b64encode(":".join(account).encode()).decode()
            options["headers"] = {"Authorization": f"Basic {encoded}"} | options.get("headers", {})
        async with self.client.request(method, URL(self.address + path, encoded="%ff" in path), **options) as response:
            found = await response.json(content_type=None)
            assert response.status == status, (response.status, found)
            return found

    async def fails(self, method: str, path: str, body: Any = None, *, status: int, code: int, **options: Any) -> str:
        """The message of a failure with this status and MySQL code."""
        error = (await self.ask(method, path, body, status, **options))["error"]
        assert error["code"] == code and len(error["sqlstate"]) == 5, error
        return str(error["message"])

    async def account(self, sql: str) -> None:
        accounts = self.engine.catalog.known_accounts
        reader = AccountReader(TokenReader(sql, DEFAULT_SETTINGS), accounts, ("root", "localhost"), None)
        await self.engine.change_accounts(reader.read())


def served(folder: Path, scenario: Callable[[Api], Awaitable[None]]) -> None:
    """Run a scenario on a database `shop`."""

    async def main() -> None:
        engine = await open_embedded(folder)
        runner = web.AppRunner(application(Interface(engine, None).routes(), HttpConnections()))
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with ClientSession() as client:
                api = Api(engine, client, f"http://127.0.0.1:{runner.addresses[0][1]}")
                await api.ask("POST", "/v1/program", {"sql": "CREATE DATABASE shop;" + PROGRAM})
                await scenario(api)
        finally:
            await runner.cleanup()
            engine.store.close()  # type: ignore[attr-defined]

    asyncio.run(main())


def test_rows_are_written_read_changed_and_deleted(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        sales = "/v1/databases/shop/tables/sales"
        one = await api.ask("POST", f"{sales}/rows", {"rows": [{"item": "tea", "price": 3.10}]}, 201)
        assert one == {"columns": [], "rows": [], "affected": 1, "last_insert_id": 1}
        many = {"rows": [{"item": "milk", "price": number} for number in range(100)]}
        assert (await api.ask("POST", f"{sales}/rows", many, 201))["affected"] == 100
        assert await api.ask("GET", f"{sales}/row?key=1") == {"row": {"id": 1, "item": "tea", "price": "3.10"}}
        assert (await api.ask("PATCH", f"{sales}/row?key=1", {"values": {"price": "4"}}))["affected"] == 1
        assert await api.ask("GET", f"{sales}/row?key=1") == {"row": {"id": 1, "item": "tea", "price": "4.00"}}
        assert (await api.ask("DELETE", f"{sales}/row?key=1"))["affected"] == 1
        await api.fails("GET", f"{sales}/row?key=1", status=404, code=1032)
        found = await api.ask("GET", "/v1/databases/shop/views/totals?by=item&key=%22milk%22&key=%22tea%22")
        assert found == {"columns": ["item", "sold", "taken"], "rows": [[["milk", 100, "4950.00"]], []]}
        assert await api.ask("GET", "/v1/databases/shop/views") == {
            "views": [{"name": "totals", "definition": found_definition(api)}]
        }

    served(tmp_path, scenario)


def found_definition(api: Api) -> str:
    return api.engine.catalog.views["shop", "totals"].select


def test_a_query_with_keys_is_a_view(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await api.ask("POST", "/v1/databases/shop/tables/sales/rows", {"rows": [{"item": "tea"}, {"item": "tea"}]}, 201)
        lookup = "/v1/databases/shop/lookup"
        query = "SELECT item, COUNT(*) AS n FROM sales WHERE item = ? GROUP BY item"
        found = await api.ask("POST", lookup, {"query": query, "keys": ["tea", "milk", None]})
        assert found == {"columns": ["item", "n"], "rows": [[["tea", 2]], [], []]}
        known = await api.ask("POST", lookup, {"query": query, "keys": ["tea"], "block": False})
        assert known["rows"] == [None], "an engine without shared memory has nothing at hand"
        await api.fails("POST", lookup, {"keys": [1]}, status=400, code=1105)
        await api.fails("POST", lookup, {"query": query, "keys": [[1, 2]]}, status=400, code=1105)
        await api.fails("POST", lookup, {"query": "SELECT RAND()", "keys": [1]}, status=400, code=1235)
        await api.fails("POST", lookup, {"query": "SELEC", "keys": [1]}, status=400, code=1064)

    served(tmp_path, scenario)


def test_a_range_is_a_part_of_the_rows_of_a_key(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        rows = [{"item": "tea", "price": price} for price in (3, 1, 4, 1, 5)]
        await api.ask("POST", "/v1/databases/shop/tables/sales/rows", {"rows": rows}, 201)
        body: dict[str, Any] = {"query": "SELECT id, price FROM sales WHERE item = ? ORDER BY price", "key": "tea"}
        found = await api.ask("POST", "/v1/databases/shop/range", body | {"low": 3, "high": "5"})
        assert found == {"columns": ["id", "price"], "rows": [[1, "3.00"], [3, "4.00"]]}
        found = await api.ask("POST", "/v1/databases/shop/range", body | {"limit": 2, "descending": True})
        assert found["rows"] == [[5, "5.00"], [3, "4.00"]]
        for wrong in ({"limit": -1}, {"inclusive": "x"}, {"key": ["a", "b"]}, {"low": {}}):
            await api.fails("POST", "/v1/databases/shop/range", body | wrong, status=400, code=1105)

    served(tmp_path, scenario)


def test_every_kind_of_value_goes_there_and_back(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await api.ask("POST", "/v1/databases/shop/program", {"sql": """CREATE TABLE kinds (
            id BIGINT UNSIGNED PRIMARY KEY, r DOUBLE, d DECIMAL(30, 10), t TEXT, b VARBINARY(9), day DATE,
            at DATETIME(6), span TIME(3), j JSON, f BOOLEAN)"""})
        row = {
            "id": 18446744073709551615, "r": 1.5e300, "d": "12345678901234567890.0123456789", "t": "é\u2028",
            "b": {"base64": "AP8="}, "day": "2024-02-29", "at": "2024-02-29T12:30:00.000001", "span": "-100:00:00.5",
            "j": '{"a": [1, null]}', "f": 1,
        }  # fmt: skip
        kinds = "/v1/databases/shop/tables/kinds"
        await api.ask("POST", f"{kinds}/rows", {"rows": [row]}, 201)
        assert await api.ask("GET", f"{kinds}/row?key=18446744073709551615") == {"row": row}
        exact = b'{"rows": [{"id": 1, "d": 0.1000000001, "f": true}, {"id": 2, "d": 1e2, "f": null}]}'
        await api.ask("POST", f"{kinds}/rows", exact, 201)
        statement = {"sql": "SELECT d, f, r FROM kinds WHERE id < ? ORDER BY id", "parameters": [3]}
        found = await api.ask("POST", "/v1/databases/shop/transactions", {"statements": [statement]})
        [one, two] = found["results"][0]["rows"]
        assert (Decimal(one[0]), one[1:]) == (Decimal("0.1000000001"), [1, None])
        assert (Decimal(two[0]), two[1:]) == (Decimal(100), [None, None])

    served(tmp_path, scenario)


def test_keys_of_several_columns_are_lists(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        secrets = "/v1/databases/shop/tables/secrets"
        await api.ask("POST", f"{secrets}/rows", {"rows": [{"a": 1, "b": "x"}]}, 201)
        assert (await api.ask("GET", f'{secrets}/row?key=[1,"X"]'))["row"]["b"] == "x"
        await api.fails("GET", f"{secrets}/row?key=1", status=400, code=1105)
        await api.fails("GET", f"{secrets}/row?key=x", status=400, code=1105)
        await api.fails("GET", f"{secrets}/row", status=400, code=1105)
        assert (await api.ask("DELETE", f'{secrets}/row?key=[1,"x"]'))["affected"] == 1

    served(tmp_path, scenario)


def test_keys_of_every_kind_are_sent_as_they_are_shown(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await api.ask("POST", "/v1/databases/shop/program", {"sql": "CREATE TABLE days (day DATE, at DATETIME(6), span TIME, b VARBINARY(9), d DECIMAL(9, 2), PRIMARY KEY (day, at))"})
        row = {"day": "2024-02-29", "at": "2024-02-29T12:30:00.500000", "span": "-100:00:00", "b": {"base64": "AP8="}, "d": "1.10"}
        await api.ask("POST", "/v1/databases/shop/tables/days/rows", {"rows": [row]}, 201)
        assert await api.ask("GET", '/v1/databases/shop/tables/days/row?key=["2024-02-29","2024-02-29T12:30:00.5"]') == {"row": row}
        for column, shown in row.items():
            found = await api.ask("POST", "/v1/databases/shop/lookup", {"view": "days", "by": [column], "keys": [shown]})
            assert found["rows"] == [[list(row.values())]], column
            await api.fails("POST", "/v1/databases/shop/lookup", {"view": "days", "by": [column], "keys": [[1, 2]]}, status=400, code=1105)
        for column, wrong in (("day", "never"), ("day", 5), ("at", "2024-02-30"), ("span", "x"), ("b", 5), ("d", "x")):
            await api.fails("POST", "/v1/databases/shop/lookup", {"view": "days", "by": [column], "keys": [wrong]}, status=400, code=1105)
        by_day = {"query": "SELECT d FROM days ORDER BY day", "low": "2024-01-01", "high": "2025-01-01"}
        assert (await api.ask("POST", "/v1/databases/shop/range", by_day))["rows"] == [["1.10"]]

    served(tmp_path, scenario)


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        path = "/v1/databases/shop/transactions"

        def insert(number: int) -> dict[str, Any]:
            return {"sql": "INSERT INTO sales (id, price) VALUES (?, ?)", "parameters": [number, 1]}

        count = {"sql": "SELECT COUNT(*) FROM sales"}
        found = await api.ask("POST", path, {"statements": [insert(1), insert(2), count]})
        assert [each["affected"] for each in found["results"]] == [1, 1, 0]
        assert found["results"][2]["rows"] == [[2]]
        message = await api.fails("POST", path, {"statements": [insert(3), insert(1)]}, status=409, code=1062)
        assert message == "Duplicate entry '1' for key 'sales.PRIMARY'"
        await api.fails("POST", path, {"statements": [insert(3), {"sql": "DROP TABLE sales"}]}, status=400, code=1235)
        wrong = {"sql": "SELECT ?", "parameters": [1, 2]}
        await api.fails("POST", path, {"statements": [wrong]}, status=400, code=1210)
        assert (await api.ask("POST", path, {"statements": [count]}))["results"][0]["rows"] == [[2]]
        raise_ = {"sql": "UPDATE sales SET price = price + 1 WHERE id = 1"}
        await asyncio.gather(*(api.ask("POST", path, {"statements": [raise_, insert(n)]}) for n in range(10, 30)))
        assert (await api.ask("GET", "/v1/databases/shop/tables/sales/row?key=1"))["row"]["price"] == "21.00"

    served(tmp_path, scenario)


def test_a_program_is_all_or_nothing(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        path = "/v1/databases/shop/program"
        wrong = {"sql": "CREATE TABLE t (id INT); DROP VIEW totals; CREATE VIEW v AS SELECT x FROM t"}
        await api.fails("POST", path, wrong, status=400, code=1054)
        assert len((await api.ask("GET", "/v1/databases/shop/views"))["views"]) == 1
        await api.ask("POST", path, {"sql": "CREATE TABLE t (id INT); CREATE VIEW v AS SELECT id FROM t"})
        await api.ask("DELETE", "/v1/databases/shop/views/v")
        await api.fails("DELETE", "/v1/databases/shop/views/v", status=404, code=1051)
        await api.fails("POST", path, {"sql": "CREATE TABLE t (id INT)"}, status=409, code=1050)
        await api.fails("POST", path, {"sql": ";"}, status=400, code=1065)
        await api.fails("POST", path, {"sql": "CREATE TEMPORARY TABLE x (id INT)"}, status=400, code=1235)
        await api.fails("GET", "/v1/databases/none/views", status=404, code=1049)
        assert (await api.ask("GET", "/v1/program"))["views"] == []

    served(tmp_path, scenario)


def test_callers_are_accounts_with_their_privileges(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await api.ask("POST", "/v1/databases/shop/tables/secrets/rows", {"rows": [{"a": 1, "b": "x"}]}, 201)
        for plugin in ("mysql_native_password", "caching_sha2_password"):
            name = f"reader_{plugin[0]}"
            await api.account(f"CREATE USER {name} IDENTIFIED WITH {plugin} BY 'päss:word'")
            await api.account(f"GRANT SELECT, INSERT ON shop.sales TO {name}")
            reader = (name, "päss:word")
            sales, secrets = "/v1/databases/shop/tables/sales", "/v1/databases/shop/tables/secrets"
            for _ in range(2):
                await api.ask("POST", f"{sales}/rows", {"rows": [{"id": None, "price": 1}]}, 201, account=reader)
            await api.ask("GET", f"{sales}/row?key=1", account=reader)
            denied = {"account": reader, "status": 403, "code": 1142}
            await api.fails("PATCH", f"{sales}/row?key=1", {"values": {"price": 1}}, **denied)
            await api.fails("DELETE", f"{sales}/row?key=1", **denied)
            await api.fails("GET", f'{secrets}/row?key=[1,"x"]', **denied)
            await api.fails("GET", "/v1/databases/shop/tables/none/row?key=1", **denied)
            await api.fails("GET", "/v1/databases/shop/views/totals?by=item&key=1", **denied)
            lookup = "/v1/databases/shop/lookup"
            await api.fails("POST", lookup, {"query": "SELECT c FROM secrets WHERE a = ?", "keys": [1]}, **denied)
            await api.fails("POST", lookup, {"query": "SELECT x FROM none WHERE a = ?", "keys": [1]}, **denied)
            await api.fails("POST", "/v1/program", {"sql": "DROP TABLE shop.sales"}, **denied)
            await api.fails("DELETE", "/v1/databases/shop/views/totals", **denied)
            await api.fails("GET", "/v1/program", **denied)
            both = {"statements": [{"sql": "DELETE FROM sales"}, {"sql": "SELECT 1"}]}
            await api.fails("POST", "/v1/databases/shop/transactions", both, **denied)
            assert (await api.ask("GET", "/v1/databases/shop/views", account=reader))["views"] == []
            await api.fails("GET", "/v1/databases/other/views", account=reader, status=403, code=1044)
            refused = {"status": 401, "code": 1045}
            await api.fails("GET", f"{sales}/row?key=1", account=(name, "wrong"), **refused)
            await api.fails("GET", f"{sales}/row?key=1", account=(name, ""), **refused)
            await api.account(f"ALTER USER {name} REQUIRE SSL")
            await api.fails("GET", f"{sales}/row?key=1", account=reader, **refused)
            await api.account(f"ALTER USER {name} REQUIRE NONE ACCOUNT LOCK")
            await api.fails("GET", f"{sales}/row?key=1", account=reader, status=403, code=3118)
            await api.account(f"ALTER USER {name} ACCOUNT UNLOCK")
            await api.account(f"REVOKE SELECT ON shop.sales FROM {name}")
            await api.fails("GET", f"{sales}/row?key=1", **denied)
            await api.account(f"GRANT SELECT (id), UPDATE (price) ON shop.sales TO {name}")
            await api.fails("GET", f"{sales}/row?key=1", **denied)
            await api.ask("PATCH", f"{sales}/row?key=1", {"values": {"price": 1}}, account=reader)
            await api.ask("POST", lookup, {"query": "SELECT id FROM sales WHERE id = ?", "keys": [1]}, account=reader)
            denied["code"] = 1143
            await api.fails("POST", lookup, {"query": "SELECT price FROM sales WHERE id = ?", "keys": [1]}, **denied)
            await api.fails("POST", "/v1/databases/shop/transactions", {"statements": [{"sql": "SELECT SUM(price) FROM sales"}]}, **denied)
            await api.account(f"DROP USER {name}")
            await api.fails("GET", f"{sales}/row?key=1", account=reader, **refused)

    served(tmp_path, scenario)


def test_who_guesses_passwords_waits_and_others_do_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(api: Api) -> None:
        await api.account("CREATE USER ann IDENTIFIED WITH mysql_native_password BY 'right'")
        refused = {"status": 401, "code": 1045}

        async def guess() -> float:
            began = asyncio.get_running_loop().time()
            await api.fails("GET", "/v1/program", account=("ann", "guessed"), **refused)
            return asyncio.get_running_loop().time() - began

        for _ in range(3):
            assert await guess() < 1
        guessing = asyncio.ensure_future(guess())
        await api.ask("GET", "/v1/program")
        assert not guessing.done()
        assert await guessing >= 1
        assert "login of 'ann' from localhost over HTTP failed, 4 in a row" in caplog.text
        assert "guessed" not in caplog.text

    served(tmp_path, scenario)


def test_nobody_gets_in_without_credentials_or_under_a_foreign_name(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        refused = {"status": 401, "code": 1045}
        await api.fails("GET", "/v1/databases/shop/views", account=None, **refused)
        await api.fails("GET", "/v1/databases/shop/views", account=("nobody", "x"), **refused)
        for header in ("Basic !", "Basic cm9vdA==", "Bearer x", "Basic /zr/"):
            headers = {"Authorization": header}
            await api.fails("GET", "/v1/databases/shop/views", account=None, headers=headers, **refused)
        await api.fails("GET", "/v1/databases/shop/views", headers={"Host": "rebound.example"}, **refused)
        await api.ask("GET", "/v1/databases/shop/views", headers={"Host": "localhost:1"})
        await api.account("ALTER USER root@localhost IDENTIFIED BY 'x'")
        await api.fails("GET", "/v1/databases/shop/views", **refused)
        named = {"account": ("root", "x"), "headers": {"Host": "db.example"}}
        await api.ask("GET", "/v1/databases/shop/views", **named)

    served(tmp_path, scenario)


def test_what_is_no_request_is_refused_in_json(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        rows, lookup = "/v1/databases/shop/tables/sales/rows", "/v1/databases/shop/lookup"
        for body in (b"", b"{", b"[]", b'{"rows": 1}', b'{"rows": []}', b'{"rows": [{"id": [1]}]}', b"\xff", b'{"x": 1}',
                     b'{"rows": [{"id": {"base64": "?"}}]}', b'{"rows": [{"id": NaN}]}', b'{"rows": ' + b"[" * 100_000,
                     b'{"rows": [{"id": 1}, {"item": "x"}]}'):  # fmt: skip
            await api.fails("POST", rows, body, status=400, code=1105)
        await api.fails("POST", rows, b"{}", status=415, code=1105, headers={"Content-Type": "text/plain"})
        await api.fails("POST", rows, b" " * (REQUEST_BYTES_MAX + 1), status=413, code=1105)
        await api.fails("POST", lookup, {"view": "sales", "keys": [1] * 10_001}, status=400, code=1105)
        await api.fails("GET", "/v1/nothing", status=404, code=1105)
        await api.fails("PUT", rows, status=405, code=1105)
        await api.fails("POST", rows, {"rows": [{"nothing": 1}]}, status=400, code=1054)
        await api.fails("POST", rows, {"rows": [{"id": "x"}]}, status=400, code=1366)

    served(tmp_path, scenario)


def test_bytes_that_are_no_utf_8_are_answered_too(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        sale = {"rows": [{"price": {"base64": "AP8="}}]}
        message = await api.fails("POST", "/v1/databases/shop/tables/sales/rows", sale, status=400, code=1366)
        assert "\\xff" in message
        query = {"statements": [{"sql": "SELECT CONCAT(X'ff41', 'a'), 'ä\\n'"}]}
        found = await api.ask("POST", "/v1/databases/shop/transactions", query)
        assert found["results"][0]["rows"] == [[{"base64": b64encode(b"\xffAa").decode()}, "ä\n"]]
        for path in ("tables/sales/row?key=%22%ff%22", "views/sales?key=%ff", "views/sales?by=%ff&key=1"):
            await api.fails("GET", f"/v1/databases/shop/{path}", status=400, code=1105)

    served(tmp_path, scenario)


def test_numbers_of_any_size_are_answered(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        async def shown(number: str) -> Any:
            body = b'{"statements": [{"sql": "SELECT ? + 0", "parameters": [%s]}]}' % number.encode()
            return (await api.ask("POST", "/v1/databases/shop/transactions", body))["results"][0]["rows"][0][0]

        assert await shown("18446744073709551616") == "18446744073709551616"
        assert await shown("1" * 100 + ".5") == float("1" * 100)
        assert await shown("0." + "1" * 100) == "0." + "1" * 30
        for path, body in {
            "transactions": b'{"statements": [{"sql": "SELECT ?", "parameters": [1e400]}]}',
            "lookup": b'{"query": "SELECT * FROM sales WHERE price = ?", "keys": [-1e400]}',
        }.items():
            assert "out of range" in await api.fails("POST", f"/v1/databases/shop/{path}", body, status=400, code=1105)

    served(tmp_path, scenario)


def test_what_is_no_credential_or_encoding_is_refused(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        broken = {"Content-Encoding": "gzip"}
        await api.fails("POST", "/v1/databases/shop/lookup", b"no gzip", status=400, code=1105, headers=broken)
        foreign = {"Authorization": "Basic ä"}
        await api.fails("GET", "/v1/program", status=401, code=1045, headers=foreign)

    served(tmp_path, scenario)
