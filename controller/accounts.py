"""Accounts and what they may do. Part of the catalog: who is who is the same at every adapter.

A privilege is held on everything, on the databases that match a pattern, or on one table; what
an account may do with a table is the union of the three. Four privileges may also be held on single columns. Until the first account statement
there is one account, root from this machine, without a password.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.passwords import DEFAULT_PLUGIN, NATIVE
from dataflow.functions.patterns import like_matcher

TABLE_PRIVILEGES = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "CREATE VIEW",
    "SHOW VIEW", "TRIGGER",
)  # fmt: skip
COLUMN_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
DATABASE_PRIVILEGES = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER",
    "CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE",
    "ALTER ROUTINE", "EVENT", "TRIGGER",
)  # fmt: skip
GLOBAL_PRIVILEGES = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "SHUTDOWN", "PROCESS", "FILE", "REFERENCES",
    "INDEX", "ALTER", "SHOW DATABASES", "SUPER", "CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE",
    "REPLICATION SLAVE", "REPLICATION CLIENT", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE",
    "CREATE USER", "EVENT", "TRIGGER", "CREATE TABLESPACE", "CREATE ROLE", "DROP ROLE",
)  # fmt: skip
"""In the order in which SHOW GRANTS lists them. Global ones may also be dynamic: any WORD_WITH_UNDERSCORE."""
GRANT_OPTION = "GRANT OPTION"

AccountName = tuple[str, str]
"""(user, host)"""


@dataclass(frozen=True, slots=True)
class Grant:
    """`privileges` on everything (no database), on databases (no table) or on a table.

    `columns` are (column, privileges on it) of the table. One of both is not empty.
    """

    database: str
    table: str
    privileges: tuple[str, ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """'user'@'host'. `stored` is empty for an account without a password, see `controller.passwords`.

    `roles` were granted to it, and `default_roles` of them are active when somebody logs in. Who logs in
    with an `expired` password has to change it first.
    """

    user: str
    host: str
    plugin: str = DEFAULT_PLUGIN
    stored: str = ""
    grants: tuple[Grant, ...] = ()
    locked: bool = False
    needs_tls: bool = False
    roles: tuple[AccountName, ...] = ()
    default_roles: tuple[AccountName, ...] = ()
    expired: bool = False

    @property
    def name(self) -> AccountName:
        return (self.user, self.host)


EVERYTHING = Grant("", "", (*GLOBAL_PRIVILEGES, GRANT_OPTION))
INITIAL_ACCOUNTS: Mapping[AccountName, Account] = MappingProxyType(
    {("root", "localhost"): Account("root", "localhost", NATIVE, grants=(EVERYTHING,))}
)


def privileges_at(database: str, table: str) -> tuple[str, ...]:
    """The privileges that can be granted at a level, without GRANT OPTION."""
    return TABLE_PRIVILEGES if table else DATABASE_PRIVILEGES if database else GLOBAL_PRIVILEGES


# --- who someone is


def find_account(accounts: Mapping[AccountName, Account], user: str, client_host: str) -> Account | None:
    """The account that `user` connecting from `client_host` is: the one with the most specific host."""
    found = [each for each in accounts.values() if each.user in (user, "") and host_matches(each.host, client_host)]
    return min(found, key=lambda each: (_vagueness(each.host), each.user == ""), default=None)


def _vagueness(host: str) -> tuple[int, int]:
    """Smaller for hosts that match less."""
    wild = re.search("[%_]", host)
    if wild is None:
        return (1 if "/" in host else 0, 0)
    return (2, -wild.start())


def host_matches(pattern: str, client_host: str) -> bool:
    pattern = pattern.lower()
    if pattern in ("%", client_host):
        return True
    if pattern == "localhost":
        return is_loopback(client_host)
    if "/" in pattern:
        try:
            return ipaddress.ip_address(client_host) in ipaddress.ip_network(pattern)
        except ValueError:
            return False
    return like(pattern, client_host)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


def like(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern with `%`, `_` and backslashes."""
    return like_matcher(pattern, "\\", "utf8mb4_bin")(name)


# --- what someone may do


class Rights:
    """What an account may do, worked out once; a dropped account (None) may do nothing."""

    def __init__(self, account: Account | None) -> None:
        grants = () if account is None else account.grants
        self.globally = frozenset(_grant_at(grants, "", "").privileges)
        self._databases = tuple(grant for grant in grants if grant.database and not grant.table)
        self._tables = tuple(grant for grant in grants if grant.table)
        self.everything = self.globally.issuperset(GLOBAL_PRIVILEGES)

    def on_database(self, database: str) -> frozenset[str]:
        found = [each.privileges for each in self._databases if like(each.database, database)]
        return self.globally.union(*found)

    def on_table(self, database: str, table: str) -> frozenset[str]:
        found = [each.privileges for each in self._tables if (each.database, each.table) == (database, table)]
        return self.on_database(database).union(*found)

    def on_columns(self, database: str, table: str, privilege: str) -> frozenset[str]:
        """The columns, in lower case, of which the account has the privilege without having it on the table."""
        return frozenset(
            column.lower()
            for each in self._tables
            if (each.database, each.table) == (database, table)
            for column, privileges in each.columns
            if privilege in privileges
        )

    def of_column(self, database: str, table: str, column: str) -> tuple[str, ...]:
        """The privileges on one column, by whatever they are held."""
        whole = self.on_table(database, table)
        return tuple(
            each for each in COLUMN_PRIVILEGES if each in whole or column.lower() in self.on_columns(database, table, each)
        )

    def sees_database(self, database: str) -> bool:
        if self.on_database(database) & _VISIBLE:
            return True
        return any(each.database == database for each in self._tables)

    def sees_table(self, database: str, table: str) -> bool:
        return bool(self.on_table(database, table) & _VISIBLE) or self.has_columns(database, table)

    def has_columns(self, database: str, table: str) -> bool:
        """Whether there are privileges on columns of the table."""
        return any(each.columns for each in self._tables if (each.database, each.table) == (database, table))

    def has_any(self, *privileges: str) -> bool:
        """One of these on everything; SUPER includes the dynamic ones."""
        if "SUPER" in self.globally and any("_" in each for each in privileges):
            return True
        return any(each in self.globally for each in privileges)


_VISIBLE = frozenset(DATABASE_PRIVILEGES) | {GRANT_OPTION}


def _grant_at(grants: Iterable[Grant], database: str, table: str) -> Grant:
    for grant in grants:
        if (grant.database, grant.table) == (database, table):
            return grant
    return Grant(database, table, ())


def with_privileges(account_grants: tuple[Grant, ...], added: Grant) -> tuple[Grant, ...]:
    held = _grant_at(account_grants, added.database, added.table)
    columns = {name: set(privileges) for name, privileges in held.columns}
    for name, privileges in added.columns:
        columns.setdefault(name, set()).update(privileges)
    return _replaced(account_grants, added, {*held.privileges, *added.privileges}, columns)


def without_privileges(account_grants: tuple[Grant, ...], removed: Grant) -> tuple[Grant, ...]:
    """What is taken from a table is taken from its columns, too."""
    held = _grant_at(account_grants, removed.database, removed.table)
    named = {name.lower(): privileges for name, privileges in removed.columns}
    columns = {
        name: set(privileges).difference(removed.privileges, named.get(name.lower(), ())) for name, privileges in held.columns
    }
    return _replaced(account_grants, removed, set(held.privileges).difference(removed.privileges), columns)


def _replaced(grants: tuple[Grant, ...], level: Grant, held: set[str], columns: dict[str, set[str]]) -> tuple[Grant, ...]:
    """The grants, with these privileges and no others where `level` is."""
    order = {name: place for place, name in enumerate((*privileges_at(level.database, level.table), GRANT_OPTION))}

    def ordered(names: set[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=lambda name: (order.get(name, len(order)), name)))

    others = [each for each in grants if (each.database, each.table) != (level.database, level.table)]
    kept = tuple((name, ordered(columns[name])) for name in sorted(columns) if columns[name])
    if held or kept:
        others.append(Grant(level.database, level.table, ordered(held), kept))
    return tuple(sorted(others, key=lambda each: (bool(each.database), bool(each.table), each.database, each.table)))


# --- in words


def shown_name(name: AccountName, quote: str = "`") -> str:
    user, host = (part.replace(quote, quote * 2) for part in name)
    return f"{quote}{user}{quote}@{quote}{host}{quote}"


def shown_names(names: Iterable[AccountName]) -> str:
    return ",".join(shown_name(each) for each in names)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`" if name else ""


def grant_texts(account: Account) -> list[str]:
    """SHOW GRANTS."""
    texts: list[str] = []
    grants = account.grants
    if not any(not each.database for each in grants):
        grants = (Grant("", "", ()), *grants)
    for grant in grants:
        held = [each for each in grant.privileges if each != GRANT_OPTION]
        level = f"{_quoted(grant.database) or '*'}.{_quoted(grant.table) or '*'}"
        granted = ", ".join(_with_columns(held, grant)) or "USAGE"
        every = privileges_at(grant.database, grant.table)
        if set(held).issuperset(every):
            others = [each for each in held if each not in every]
            granted = ", ".join(["ALL PRIVILEGES", *_with_columns(others, grant)])
        option = " WITH GRANT OPTION" if GRANT_OPTION in grant.privileges else ""
        texts.append(f"GRANT {granted} ON {level} TO {shown_name(account.name)}{option}")
    if account.roles:
        texts.append(f"GRANT {shown_names(account.roles)} TO {shown_name(account.name)}")
    return texts


def _with_columns(privileges: list[str], grant: Grant) -> list[str]:
    """The privileges, and those of columns among them."""
    columns = {each: [_quoted(name) for name, held in grant.columns if each in held] for each in COLUMN_PRIVILEGES}
    named = [(each, each) for each in privileges]
    named += [(each, f"{each} ({', '.join(names)})") for each, names in columns.items() if names]
    order = privileges_at(grant.database, grant.table)
    named.sort(key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))
    return [text for _, text in named]


def create_text(account: Account) -> str:
    """SHOW CREATE USER."""
    stored = account.stored.replace("\\", "\\\\").replace("'", "''")
    password = f" AS '{stored}'" if stored else ""
    roles = f"DEFAULT ROLE {shown_names(account.default_roles)} " if account.default_roles else ""
    return (
        f"CREATE USER {shown_name(account.name)} IDENTIFIED WITH '{account.plugin}'{password} {roles}"
        f"REQUIRE {'SSL' if account.needs_tls else 'NONE'} PASSWORD EXPIRE{'' if account.expired else ' DEFAULT'} "
        f"ACCOUNT {'LOCK' if account.locked else 'UNLOCK'} PASSWORD HISTORY DEFAULT "
        "PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT"
    )
