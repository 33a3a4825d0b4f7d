"""Statements about users and roles: to make and change them, SET ROLE, GRANT, REVOKE, and what SHOW tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.execution.outcome import Done, ResultSet
from controller.accounts import Account, create_text, grant_texts
from controller.privileges import check_account_statement, denied_database
from controller.roles import require, with_roles
from controller.sql.account_statements import AccountReader
from controller.sql.plan import OutputColumn
from controller.sql.text.lexer import leading_words
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import text
from mysql_adapter.information_schema.virtual import COLLATION
from mysql_adapter.neighbours import tell_catalog
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


async def change_accounts(session: Session, cursor: TokenCursor) -> Done:
    await session.environment.database.refresh_catalog()
    statement = _reader(session, cursor).read()
    check_account_statement(session, statement)
    await session.commit()
    done = await session.environment.database.change_accounts(statement)
    await tell_catalog(session.environment)
    return done


def check_password(session: Session, sql: str) -> None:
    """Who came with an expired password may only change it, and SET what drivers set at first."""
    words = leading_words(sql, 2)
    if words[:1] != ("SET",) and words != ("ALTER", "USER"):
        account = session.environment.database.catalog.known_accounts.get(session.account.name)
        if account is None or account.expired:
            raise InvalidStatement(Condition.MUST_CHANGE_PASSWORD)
        session.account = account


async def set_role(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("SET", "ROLE")
    await session.environment.database.refresh_catalog()
    account = session.environment.database.catalog.known_accounts.get(session.account.name) or session.account
    if cursor.accept("DEFAULT"):
        roles = account.default_roles
    elif cursor.accept("ALL", "EXCEPT"):
        left_out = _reader(session, cursor).roles() or ()
        roles = tuple(each for each in account.roles if each not in left_out)
    else:
        named = _reader(session, cursor).roles()
        roles = account.roles if named is None else named
    cursor.expect_end()
    require(account, roles)
    session.roles = roles
    return Done()


def _reader(session: Session, cursor: TokenCursor) -> AccountReader:
    accounts = session.environment.database.catalog.known_accounts
    plugin = str(session.environment.globals.get("default_authentication_plugin"))
    return AccountReader(cursor, accounts, session.account.name, session.database, plugin)


async def _named(session: Session, cursor: TokenCursor) -> Account:
    """The account that comes next; another's only for those who may read the accounts."""
    name = _reader(session, cursor).name()
    if name != session.account.name and "SELECT" not in session.rights.on_database("mysql"):
        raise denied_database(session, "mysql")
    await session.environment.database.refresh_catalog()
    account = session.environment.database.catalog.known_accounts.get(name)
    if account is None:
        raise InvalidStatement(Condition.NO_SUCH_GRANT, *name)
    return account


async def grants(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    if cursor.accept("FOR"):
        account = await _named(session, cursor)
    else:
        known = session.environment.database.catalog.known_accounts
        account = known.get(session.account.name) or session.account
        account = with_roles(account, session.roles, known) or account
    cursor.expect_end()
    column = OutputColumn(f"Grants for {account.user}@{account.host}", text(1024, COLLATION), False)
    return ResultSet((column,), [(each,) for each in grant_texts(account)])


async def create_user(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    account = await _named(session, cursor)
    cursor.expect_end()
    column = OutputColumn(f"CREATE USER for {account.user}@{account.host}", text(1024, COLLATION), False)
    return ResultSet((column,), [(create_text(account),)])
