"""Account statements as changes of the catalog.

An `AccountStatement` is what CREATE USER, GRANT and the like ask for, with passwords already
hashed: that is what travels to the controller and what it applies, all or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.accounts import (
    Account,
    AccountName,
    Grant,
    privileges_at,
    shown_name,
    with_privileges,
    without_privileges,
)
from controller.catalog import Catalog, CatalogChange, Note
from controller.passwords import DEFAULT_PLUGIN
from controller.roles import granted, renamed, require, taken, without
from controller.sql.plan import Query
from controller.sql.planner import plan
from controller.sql.settings import DEFAULT_SETTINGS
from controller.sql.text.lexer import quoted
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import is_internal

ALL = "ALL PRIVILEGES"


@dataclass(frozen=True, slots=True)
class UserChange:
    """One user of a statement; None leaves a property as it is. `renamed_to` is RENAME USER's."""

    user: str
    host: str
    plugin: str | None = None
    stored: str | None = None
    locked: bool | None = None
    needs_tls: bool | None = None
    expired: bool | None = None
    renamed_to: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AccountStatement:
    """`action` is CREATE, ALTER, DROP or RENAME USER, CREATE or DROP ROLE, GRANT, REVOKE, REVOKE ALL,
    GRANT ROLE, REVOKE ROLE or DEFAULT ROLE.

    `roles` are those of the last three, and of CREATE USER … DEFAULT ROLE; None stands for all that
    the account has. `optional` is IF [NOT] EXISTS. `privileges` are those of GRANT and REVOKE at a level;
    `ALL PRIVILEGES` stands for all of that level. `columns` are (column, privilege) of a table.
    """

    action: str
    users: tuple[UserChange, ...]
    optional: bool = False
    privileges: tuple[str, ...] = ()
    database: str = ""
    table: str = ""
    roles: tuple[tuple[str, str], ...] | None = ()
    columns: tuple[tuple[str, str], ...] = ()


def plan_accounts(statement: AccountStatement, catalog: Catalog) -> CatalogChange:
    """What an account statement changes."""
    if statement.columns and statement.action == "GRANT":
        statement = _with_known_columns(statement, catalog)
    after = dict(catalog.known_accounts)
    failed: list[AccountName] = []
    for user in statement.users:
        if not _apply(statement, user, after):
            failed.append((user.user, user.host))
    notes: tuple[Note, ...] = ()
    if failed:
        if not statement.optional:
            raise _failure(statement, failed)
        creates = statement.action in ("CREATE USER", "CREATE ROLE")
        condition = Condition.USER_EXISTS if creates else Condition.USER_MISSING
        notes = tuple(Note("Note", condition, condition.template.format(shown_name(name, "'"))) for name in failed)
    if not after:
        raise _failure(statement, [(user.user, user.host) for user in statement.users])
    stored = catalog.accounts
    put = tuple(account for name, account in after.items() if stored.get(name) != account)
    if failed and len(failed) == len(statement.users):
        put = ()
    return CatalogChange(accounts_put=put, accounts_dropped=tuple(stored.keys() - after.keys()), notes=notes)


def _failure(statement: AccountStatement, names: list[AccountName]) -> InvalidStatement:
    match statement.action:
        case "GRANT":
            return InvalidStatement(Condition.CANNOT_CREATE_BY_GRANT)
        case "REVOKE":
            if statement.table:
                return InvalidStatement(Condition.NO_SUCH_TABLE_GRANT, *names[0], statement.table)
            return InvalidStatement(Condition.NO_SUCH_GRANT, *names[0])
        case "REVOKE ALL":
            return InvalidStatement(Condition.CANNOT_REVOKE_ALL)
        case "GRANT ROLE" | "REVOKE ROLE" | "DEFAULT ROLE":
            return InvalidStatement(Condition.UNKNOWN_AUTHORIZATION, shown_name(names[0]))
    shown = ",".join(shown_name(name, "'") for name in names)
    return InvalidStatement(Condition.CANNOT_USER, statement.action, shown)


def _apply(statement: AccountStatement, user: UserChange, accounts: dict[AccountName, Account]) -> bool:
    """Do to `accounts` what the statement asks for `user`; False if that cannot be."""
    name = (user.user, user.host)
    account = accounts.get(name)
    if statement.action in ("CREATE USER", "CREATE ROLE"):
        if account is not None:
            return False
        account = _altered(Account(*name, user.plugin or DEFAULT_PLUGIN), user)
        if statement.roles:
            account = replace(granted(account, statement.roles, accounts), default_roles=statement.roles)
        accounts[name] = account
        return True
    if account is None:
        return False
    level = (statement.database, statement.table)
    match statement.action:
        case "ALTER USER":
            accounts[name] = _altered(account, user)
        case "DROP USER" | "DROP ROLE":
            del accounts[name]
            accounts.update({each.name: without(each, {name}) for each in accounts.values()})
        case "RENAME USER":
            assert user.renamed_to is not None
            if user.renamed_to in accounts:
                return False
            del accounts[name]
            new_user, new_host = user.renamed_to
            accounts[user.renamed_to] = replace(account, user=new_user, host=new_host)
            accounts.update({each.name: renamed(each, name, user.renamed_to) for each in accounts.values()})
        case "GRANT":
            accounts[name] = replace(account, grants=with_privileges(account.grants, _grant(statement)))
        case "REVOKE":
            known = any((each.database, each.table) == level for each in account.grants)
            if not known and (statement.database or statement.table):
                return False
            accounts[name] = replace(account, grants=without_privileges(account.grants, _grant(statement)))
        case "REVOKE ALL":
            accounts[name] = replace(account, grants=())
        case "GRANT ROLE":
            accounts[name] = granted(account, statement.roles or (), accounts)
        case "REVOKE ROLE":
            accounts[name] = taken(account, statement.roles or (), accounts)
        case "DEFAULT ROLE":
            default = account.roles if statement.roles is None else statement.roles
            require(account, default)
            accounts[name] = replace(account, default_roles=default)
    return True


def _grant(statement: AccountStatement) -> Grant:
    """The privileges named, with ALL opened up; USAGE is none of them."""
    found = set(statement.privileges) - {"USAGE"}
    if ALL in found:
        found = (found - {ALL}).union(privileges_at(statement.database, statement.table))
    columns = {name: tuple(each for column, each in statement.columns if column == name) for name, _ in statement.columns}
    return Grant(statement.database, statement.table, tuple(found), tuple(columns.items()))


def _with_known_columns(statement: AccountStatement, catalog: Catalog) -> AccountStatement:
    """The statement with columns as the table or view calls them."""
    database, table = statement.database, statement.table
    if (database, table) in catalog.views:
        shown = plan(f"SELECT * FROM {quoted(database)}.{quoted(table)}", catalog, None, DEFAULT_SETTINGS).statement
        assert isinstance(shown, Query)
        names = [each.name for each in shown.columns]
    else:
        names = [each.name for each in catalog.table(database, table).columns if not is_internal(each)]
    known = {name.lower(): name for name in names}
    for column, _ in statement.columns:
        if column.lower() not in known:
            raise InvalidStatement(Condition.UNKNOWN_COLUMN, column, table)
    return replace(statement, columns=tuple((known[column.lower()], privilege) for column, privilege in statement.columns))


def _altered(account: Account, user: UserChange) -> Account:
    changes = {
        name: value
        for name in ("plugin", "stored", "locked", "needs_tls", "expired")
        if (value := getattr(user, name)) is not None
    }
    if user.stored is not None:
        changes.setdefault("expired", False)
    return replace(account, **changes)
