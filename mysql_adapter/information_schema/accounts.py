"""The tables that describe accounts: information_schema's privileges, and mysql.user and mysql.db."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from controller.accounts import (
    DATABASE_PRIVILEGES,
    GLOBAL_PRIVILEGES,
    GRANT_OPTION,
    Account,
    Grant,
    shown_name,
)
from dataflow.values.types import Row
from mysql_adapter.information_schema.virtual import virtual

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


def _accounts_seen(session: Session) -> list[Account]:
    """Those who may read the accounts see all, others themselves."""
    accounts = session.environment.database.catalog.known_accounts
    if "SELECT" in session.rights.on_database("mysql"):
        return [accounts[name] for name in sorted(accounts)]
    own = accounts.get(session.account.name)
    return [] if own is None else [own]


def _grants(session: Session) -> Iterator[tuple[str, Grant, str]]:
    """(grantee, grant, whether it may be handed on)"""
    for account in _accounts_seen(session):
        for grant in account.grants:
            yield shown_name(account.name, "'"), grant, "YES" if GRANT_OPTION in grant.privileges else "NO"


def _privileges(session: Session) -> Iterator[tuple[str, Grant, str, str]]:
    """(grantee, grant, each of its privileges, whether it may be handed on)"""
    for grantee, grant, grantable in _grants(session):
        for privilege in grant.privileges:
            if privilege != GRANT_OPTION:
                yield grantee, grant, privilege, grantable


@virtual("USER_PRIVILEGES", """
    GRANTEE 292
    TABLE_CATALOG 512
    PRIVILEGE_TYPE 64
    IS_GRANTABLE 3
""")
def user_privileges(session: Session) -> Iterator[Row]:
    for account in _accounts_seen(session):
        if not any(not grant.database for grant in account.grants):
            yield (shown_name(account.name, "'"), "def", "USAGE", "NO")
    for grantee, grant, privilege, grantable in _privileges(session):
        if not grant.database:
            yield (grantee, "def", privilege, grantable)


@virtual("SCHEMA_PRIVILEGES", """
    GRANTEE 292
    TABLE_CATALOG 512
    TABLE_SCHEMA 64
    PRIVILEGE_TYPE 64
    IS_GRANTABLE 3
""")
def schema_privileges(session: Session) -> Iterator[Row]:
    for grantee, grant, privilege, grantable in _privileges(session):
        if grant.database and not grant.table:
            yield (grantee, "def", grant.database, privilege, grantable)


@virtual("TABLE_PRIVILEGES", """
    GRANTEE 292
    TABLE_CATALOG 512
    TABLE_SCHEMA 64
    TABLE_NAME 64
    PRIVILEGE_TYPE 64
    IS_GRANTABLE 3
""")
def table_privileges(session: Session) -> Iterator[Row]:
    for grantee, grant, privilege, grantable in _privileges(session):
        if grant.table:
            yield (grantee, "def", grant.database, grant.table, privilege, grantable)


@virtual("COLUMN_PRIVILEGES", """
    GRANTEE 292
    TABLE_CATALOG 512
    TABLE_SCHEMA 64
    TABLE_NAME 64
    COLUMN_NAME 64
    PRIVILEGE_TYPE 64
    IS_GRANTABLE 3
""")
def column_privileges(session: Session) -> Iterator[Row]:
    for grantee, grant, grantable in _grants(session):
        for column, privileges in grant.columns:
            for privilege in privileges:
                yield (grantee, "def", grant.database, grant.table, column, privilege, grantable)


_SHORT = {"SHOW DATABASES": "Show_db", "CREATE TEMPORARY TABLES": "Create_tmp_table", "REPLICATION SLAVE": "Repl_slave",
          "REPLICATION CLIENT": "Repl_client", GRANT_OPTION: "Grant"}  # fmt: skip


def _flag_lines(privileges: tuple[str, ...]) -> str:
    names = (_SHORT.get(each, each.capitalize().replace(" ", "_")) for each in privileges)
    return "\n".join(f"{name}_priv 1" for name in names)


_GLOBAL = (*GLOBAL_PRIVILEGES, GRANT_OPTION)
_DATABASE = (*DATABASE_PRIVILEGES, GRANT_OPTION)


def _flags(privileges: tuple[str, ...], held: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("Y" if each in held else "N" for each in privileges)


@virtual("user", f"""
    Host 255
    User 32
    {_flag_lines(_GLOBAL)}
    ssl_type 9
    plugin 64
    authentication_string longtext
    password_expired 1
    account_locked 1
""", "mysql")
def user(session: Session) -> Iterator[Row]:
    for account in _accounts_seen(session):
        held = next((grant.privileges for grant in account.grants if not grant.database), ())
        tls = "ANY" if account.needs_tls else ""
        locked, expired = ("Y" if each else "N" for each in (account.locked, account.expired))
        yield (account.host, account.user, *_flags(_GLOBAL, held), tls, account.plugin, account.stored, expired, locked)


@virtual("db", f"""
    Host 255
    Db 64
    User 32
    {_flag_lines(_DATABASE)}
""", "mysql")
def db(session: Session) -> Iterator[Row]:
    for account in _accounts_seen(session):
        for grant in account.grants:
            if grant.database and not grant.table:
                yield (account.host, grant.database, account.user, *_flags(_DATABASE, grant.privileges))


@virtual("role_edges", """
    FROM_HOST 255
    FROM_USER 32
    TO_HOST 255
    TO_USER 32
    WITH_ADMIN_OPTION 1
""", "mysql")
def role_edges(session: Session) -> Iterator[Row]:
    for account in _accounts_seen(session):
        for user, host in account.roles:
            yield (host, user, account.host, account.user, "N")


@virtual("default_roles", """
    HOST 255
    USER 32
    DEFAULT_ROLE_HOST 255
    DEFAULT_ROLE_USER 32
""", "mysql")
def default_roles(session: Session) -> Iterator[Row]:
    for account in _accounts_seen(session):
        for user, host in account.default_roles:
            yield (account.host, account.user, host, user)
