"""Account statements as text, as changes of the catalog, and as stored bytes."""

from __future__ import annotations

import pytest

from controller.account_changes import AccountStatement, plan_accounts
from controller.accounts import EVERYTHING, Account, Grant, Rights, create_text, grant_texts, like
from controller.catalog import Catalog, decode_account, encode_account
from controller.passwords import NATIVE, SHA2
from controller.sql.account_statements import AccountReader
from controller.sql.references import Need, needs_of
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from dataflow.errors import MillraceError

SETTINGS = Settings()


def read(sql: str, catalog: Catalog | None = None) -> AccountStatement:
    accounts = (catalog or Catalog()).known_accounts
    return AccountReader(TokenReader(sql, SETTINGS), accounts, ("root", "localhost"), "shop").read()


def after(*statements: str) -> Catalog:
    catalog = Catalog()
    for sql in statements:
        catalog = catalog.apply(plan_accounts(read(sql, catalog), catalog))
    return catalog


def test_the_first_statement_keeps_root() -> None:
    catalog = after("CREATE USER a")
    assert set(catalog.accounts) == {("root", "localhost"), ("a", "%")}
    assert catalog.accounts["root", "localhost"].grants == (EVERYTHING,)


def test_nothing_read_has_the_password() -> None:
    for sql in ("CREATE USER a IDENTIFIED BY 'pa55'", "SET PASSWORD = 'pa55'", "ALTER USER root@localhost IDENTIFIED BY 'pa55'"):
        statement = read(sql)
        assert "pa55" not in repr(statement)
        assert statement.users[0].stored


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a", ("a", "%")),
        ("'a b'@'%'", ("a b", "%")),
        ("`a`@`h`", ("a", "h")),
        ('"a"@"10.0.%"', ("a", "10.0.%")),
        ("a@LOCALHOST", ("a", "localhost")),
        ("a@127.0.0.1", ("a", "127.0.0.1")),
        ("''@h", ("", "h")),
        ("CURRENT_USER", ("root", "localhost")),
        ("current_user()", ("root", "localhost")),
    ],
)
def test_names(written: str, name: tuple[str, str]) -> None:
    user = read(f"DROP USER {written}").users[0]
    assert (user.user, user.host) == name


def test_plugins_and_hashes() -> None:
    native = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
    for sql in (
        f"CREATE USER a IDENTIFIED WITH mysql_native_password AS '{native}'",
        f"CREATE USER a IDENTIFIED WITH 'mysql_native_password' AS 0x{native.encode().hex()}",
        f"CREATE USER a IDENTIFIED BY PASSWORD '{native}'",
        f"CREATE USER a IDENTIFIED VIA mysql_native_password USING '{native}'",
    ):
        user = read(sql).users[0]
        assert (user.plugin, user.stored) == (NATIVE, native)
    catalog = after(f"CREATE USER a IDENTIFIED WITH mysql_native_password AS '{native}'")
    assert read("ALTER USER a IDENTIFIED BY 'x'", catalog).users[0].plugin == NATIVE
    assert read("CREATE USER b IDENTIFIED BY 'x'").users[0].plugin == SHA2


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE USER", 1064),
        ("CREATE USER a IDENTIFIED", 1064),
        ("CREATE USER a IDENTIFIED BY x", 1064),
        ("CREATE USER a PASSWORD NOW", 1064),
        ("CREATE USER a REQUIRE X509", 1235),
        ("GRANT DELETE (a) ON shop.t TO a", 1064),
        ("GRANT r TO a WITH ADMIN OPTION", 1235),
        ("GRANT SELECT, r TO", 1064),
        ("GRANT SELECT ON PROCEDURE p TO a", 1235),
        ("GRANT ALL ON *.* TO a IDENTIFIED BY 'x'", 1064),
        ("REVOKE ALL ON *.* TO a", 1064),
        ("RENAME USER a b", 1064),
    ],
)
def test_what_is_refused(sql: str, code: int) -> None:
    with pytest.raises(MillraceError) as raised:
        read(sql)
    assert raised.value.condition.code == code


def test_statements_happen_as_a_whole_or_not_at_all() -> None:
    catalog = after("CREATE USER a")
    with pytest.raises(MillraceError):
        plan_accounts(read("CREATE USER b, a", catalog), catalog)
    change = plan_accounts(read("CREATE USER IF NOT EXISTS b, a", catalog), catalog)
    assert [account.name for account in change.accounts_put] == [("b", "%")]
    assert [note.condition.code for note in change.notes] == [3163]


def test_rights_are_the_union_of_the_levels() -> None:
    grants = (Grant("", "", ("PROCESS",)), Grant("s%", "", ("SELECT",)), Grant("shop", "t", ("DELETE",)))
    rights = Rights(Account("a", "%", grants=grants))
    assert rights.on_table("shop", "t") == {"PROCESS", "SELECT", "DELETE"}
    assert rights.on_table("shop", "u") == {"PROCESS", "SELECT"}
    assert rights.on_table("other", "t") == {"PROCESS"}
    assert rights.sees_database("stock") and not rights.sees_database("other")
    assert not rights.everything and Rights(Account("r", "%", grants=(EVERYTHING,))).everything
    assert not Rights(None).sees_table("shop", "t")


def test_patterns() -> None:
    assert like(r"test\_%", "test_1") and not like(r"test\_%", "test1")
    assert like("a_c", "abc") and not like("a.c", "abc")


def test_accounts_are_stored_and_read_again() -> None:
    account = Account("a", "h", NATIVE, "*" + "0" * 40, (EVERYTHING, Grant("d", "t", ("SELECT",))), True, True)
    assert decode_account(encode_account(account)) == account


def test_texts_read_back_as_what_they_were() -> None:
    catalog = after(
        "CREATE USER a IDENTIFIED BY 'x' REQUIRE SSL ACCOUNT LOCK",
        r"GRANT SELECT, CREATE VIEW ON `we``ird\_%`.* TO a WITH GRANT OPTION",
        "GRANT ALL ON *.* TO a",
        "GRANT INSERT ON shop.t TO a",
    )
    account = catalog.accounts["a", "%"]
    copied = after(create_text(account), *grant_texts(account))
    assert copied.accounts["a", "%"] == account


@pytest.mark.parametrize(
    ("sql", "needs"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM t JOIN o.u USING (a)", ["SELECT d.t", "SELECT o.u"]),
        ("INSERT INTO t (a) SELECT a FROM u", ["INSERT d.t", "SELECT d.u"]),
        ("REPLACE INTO t VALUES (1)", ["INSERT d.t", "DELETE d.t"]),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", ["INSERT d.t", "UPDATE d.t"]),
        ("UPDATE t SET a = 1", ["UPDATE d.t"]),
        ("UPDATE t SET a = b", ["UPDATE d.t", "SELECT d.t"]),
        ("UPDATE t SET a = 1 WHERE b IN (SELECT b FROM u)", ["UPDATE d.t", "SELECT d.t", "SELECT d.u"]),
        ("DELETE FROM t", ["DELETE d.t"]),
        ("DELETE FROM t WHERE a = 1", ["DELETE d.t", "SELECT d.t"]),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", ["SELECT d.t", "SELECT d.c?"]),
    ],
)
def test_needs(sql: str, needs: list[str]) -> None:
    def shown(need: Need) -> str:
        return f"{need.privilege} {need.database}.{need.table}{'?' if need.uncertain else ''}"

    assert sorted(map(shown, needs_of(sql, "d", SETTINGS))) == sorted(needs)


def test_writes_of_several_tables() -> None:
    found = {(need.privilege, need.table) for need in needs_of("UPDATE t JOIN u ON t.a = u.a SET t.b = 1", "d", SETTINGS)}
    assert found == {("UPDATE", "t"), ("SELECT", "t"), ("SELECT", "u")}
    found = {(need.privilege, need.table) for need in needs_of("UPDATE t JOIN u ON t.a = u.a SET b = 1", "d", SETTINGS)}
    assert {("UPDATE", "t"), ("UPDATE", "u")} <= found
    for sql in ("DELETE x FROM t x JOIN u ON x.a = u.a", "DELETE FROM x USING t x JOIN u ON x.a = u.a"):
        found = {(need.privilege, need.table) for need in needs_of(sql, "d", SETTINGS)}
        assert found == {("DELETE", "t"), ("SELECT", "t"), ("SELECT", "u")}
