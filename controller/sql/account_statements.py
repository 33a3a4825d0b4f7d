"""CREATE, ALTER, DROP and RENAME USER, CREATE and DROP ROLE, SET PASSWORD, SET DEFAULT ROLE, GRANT and REVOKE.

Passwords are hashed as they are read, so nothing that leaves this module has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from controller.account_changes import ALL, AccountStatement, UserChange
from controller.accounts import (
    COLUMN_PRIVILEGES,
    DATABASE_PRIVILEGES,
    GLOBAL_PRIVILEGES,
    GRANT_OPTION,
    TABLE_PRIVILEGES,
    Account,
    AccountName,
    privileges_at,
)
from controller.passwords import DEFAULT_PLUGIN, NATIVE, PLUGINS, is_stored_password, stored_password
from controller.sql.text.cursor import TokenReader
from controller.sql.text.lexer import TokenKind, string_value
from dataflow.errors import Condition, InvalidStatement, Unsupported

USER_LENGTH_MAX = 32
HOST_LENGTH_MAX = 255

_KNOWN = frozenset({*TABLE_PRIVILEGES, *DATABASE_PRIVILEGES, *GLOBAL_PRIVILEGES, "USAGE"})


class AccountReader:
    """Reads one statement for someone: `me` is who CURRENT_USER is, `database` what ON * is.

    `default_plugin` is that of new accounts.
    """

    def __init__(
        self,
        cursor: TokenReader,
        accounts: Mapping[AccountName, Account],
        me: AccountName,
        database: str | None,
        default_plugin: str = DEFAULT_PLUGIN,
    ) -> None:
        self._default_plugin = default_plugin
        self._cursor = cursor
        self._accounts = accounts
        self._me = me
        self._database = database

    def read(self) -> AccountStatement:
        cursor = self._cursor
        verb = cursor.next().upper
        match verb:
            case "CREATE" | "DROP" if cursor.accept("ROLE"):
                statement = self._role_names(verb)
            case "CREATE" | "ALTER" | "DROP" | "RENAME":
                cursor.expect("USER")
                statement = self._users(f"{verb} USER")
            case "SET" if cursor.accept("DEFAULT", "ROLE"):
                roles = self.roles()
                cursor.expect("TO")
                statement = AccountStatement("DEFAULT ROLE", tuple(self._names()), roles=roles)
            case "SET":
                cursor.expect("PASSWORD")
                statement = self._set_password()
            case "GRANT" | "REVOKE":
                statement = self._grant(verb)
            case _:
                cursor.back()
                raise cursor.error()
        cursor.expect_end()
        return statement

    # -- users

    def _users(self, action: str) -> AccountStatement:
        cursor = self._cursor
        optional = action != "RENAME USER" and (
            cursor.accept("IF", "NOT", "EXISTS") if action == "CREATE USER" else cursor.accept("IF", "EXISTS")
        )
        users = [self._user(action)]
        while cursor.accept(","):
            users.append(self._user(action))
        roles: tuple[AccountName, ...] | None = ()
        if action in ("CREATE USER", "ALTER USER"):
            if cursor.accept("DEFAULT", "ROLE"):
                roles = self.roles()
                if action == "ALTER USER":
                    return AccountStatement("DEFAULT ROLE", tuple(users), optional, roles=roles)
            options = self._options()
            users = [
                replace(each, locked=options.locked, needs_tls=options.needs_tls, expired=options.expired) for each in users
            ]
        return AccountStatement(action, tuple(users), optional, roles=roles or ())

    def _role_names(self, verb: str) -> AccountStatement:
        optional = self._cursor.accept("IF", "NOT", "EXISTS") if verb == "CREATE" else self._cursor.accept("IF", "EXISTS")
        locked = True if verb == "CREATE" else None
        users = tuple(replace(each, locked=locked, expired=locked) for each in self._names())
        return AccountStatement(f"{verb} ROLE", users, bool(optional))

    def roles(self) -> tuple[AccountName, ...] | None:
        """NONE, ALL (as None) or a list of roles."""
        if self._cursor.accept("NONE"):
            return ()
        if self._cursor.accept("ALL"):
            return None
        return tuple((each.user, each.host) for each in self._names())

    def _user(self, action: str) -> UserChange:
        name = self.name()
        if action == "RENAME USER":
            self._cursor.expect("TO")
            return UserChange(*name, renamed_to=self.name())
        if action == "DROP USER":
            return UserChange(*name)
        known = self._accounts.get(name)
        if known is not None:
            return self._identified(UserChange(*name), known.plugin)
        return self._identified(UserChange(*name, plugin=self._default_plugin), self._default_plugin)

    def name(self) -> AccountName:
        """'user'@'host', user, or CURRENT_USER."""
        cursor = self._cursor
        if cursor.at("CURRENT_USER") or cursor.at("USER", "("):
            cursor.next()
            if cursor.accept("("):
                cursor.expect(")")
            return self._me
        user = cursor.string() if cursor.at_string() else cursor.word_or_string()
        host = "%"
        if cursor.token.kind is TokenKind.VARIABLE and not cursor.token.text.startswith("@@"):
            written = cursor.next().text[1:]
            if written[:1] in ("'", '"'):
                host = string_value(written)
            elif written:
                host = written.strip("`")
            else:
                host = cursor.word_or_string()
        if len(user) > USER_LENGTH_MAX:
            raise InvalidStatement(Condition.STRING_TOO_LONG, user, "user name", USER_LENGTH_MAX)
        if len(host) > HOST_LENGTH_MAX:
            raise InvalidStatement(Condition.STRING_TOO_LONG, host, "host name", HOST_LENGTH_MAX)
        return user, host.lower()

    def _identified(self, user: UserChange, plugin: str) -> UserChange:
        """[IDENTIFIED …] of a user whose plugin is, or would be, `plugin`."""
        cursor = self._cursor
        if not cursor.accept("IDENTIFIED"):
            return user
        stored = ""
        if cursor.accept_any("WITH", "VIA"):
            plugin = cursor.word_or_string().lower()
            if plugin not in PLUGINS:
                raise InvalidStatement(Condition.PLUGIN_MISSING, plugin)
            if cursor.accept_any("AS", "USING"):
                return replace(user, plugin=plugin, stored=self._stored(plugin))
            if not cursor.accept("BY"):
                return replace(user, plugin=plugin, stored=stored)
        else:
            cursor.expect("BY")
        if cursor.accept("PASSWORD"):
            return replace(user, plugin=NATIVE, stored=self._stored(NATIVE))
        return replace(user, plugin=plugin, stored=self._password(plugin))

    def _stored(self, plugin: str) -> str:
        value = self._cursor.literal()
        stored = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if not is_stored_password(plugin, stored):
            raise InvalidStatement(Condition.PASSWORD_FORMAT)
        return stored

    def _password(self, plugin: str) -> str:
        cursor = self._cursor
        if cursor.at("RANDOM"):
            raise Unsupported("RANDOM PASSWORD")
        stored = stored_password(plugin, cursor.string())
        if cursor.accept("REPLACE"):
            cursor.string()
        if cursor.at("RETAIN"):
            raise Unsupported("RETAIN CURRENT PASSWORD")
        return stored

    def _options(self) -> UserChange:
        """What follows the users; limits and password policies are read and not kept."""
        cursor = self._cursor
        locked = needs_tls = expired = None
        while not cursor.at_end:
            if cursor.accept("REQUIRE"):
                needs_tls = cursor.accept("SSL")
                if not needs_tls and not cursor.accept("NONE"):
                    raise Unsupported("REQUIRE " + cursor.token.upper)
            elif cursor.accept("ACCOUNT"):
                locked = cursor.accept("LOCK")
                if not locked:
                    cursor.expect("UNLOCK")
            elif cursor.accept("WITH"):
                while cursor.token.upper.startswith("MAX_"):
                    cursor.next()
                    cursor.integer()
            elif cursor.accept("PASSWORD"):
                expired = self._password_policy() or expired
            elif cursor.accept_any("FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"):
                cursor.next()
            elif cursor.accept_any("COMMENT", "ATTRIBUTE"):
                cursor.string()
            else:
                raise cursor.error()
        return UserChange("", "", locked=locked, needs_tls=needs_tls, expired=expired)

    def _password_policy(self) -> bool | None:
        """True if the password is expired by this."""
        cursor = self._cursor
        kind = cursor.accept_any("EXPIRE", "HISTORY", "REUSE", "REQUIRE")
        if kind == "EXPIRE" and not cursor.at_any("DEFAULT", "NEVER", "INTERVAL"):
            return True
        if not kind:
            raise cursor.error()
        cursor.accept("INTERVAL")
        cursor.accept("CURRENT")
        if not cursor.accept_any("DEFAULT", "NEVER", "OPTIONAL") and cursor.at_literal():
            cursor.integer()
            cursor.accept("DAY")
        return None

    def _set_password(self) -> AccountStatement:
        cursor = self._cursor
        name = self.name() if cursor.accept("FOR") else self._me
        known = self._accounts.get(name)
        if known is None:
            raise InvalidStatement(Condition.PASSWORD_NO_MATCH)
        if cursor.at("TO"):
            raise Unsupported("RANDOM PASSWORD")
        cursor.expect("=")
        if cursor.accept("PASSWORD", "("):
            stored = stored_password(known.plugin, cursor.string())
            cursor.expect(")")
        else:
            stored = self._password(known.plugin)
        return AccountStatement("ALTER USER", (UserChange(*name, stored=stored),))

    # -- privileges

    def _grant(self, verb: str) -> AccountStatement:
        cursor = self._cursor
        optional = verb == "REVOKE" and cursor.accept("IF", "EXISTS")
        if self._is_about_roles():
            return self._grant_roles(verb, optional)
        privileges, columns = self._privileges()
        word = "TO" if verb == "GRANT" else "FROM"
        if not columns and cursor.accept(word):
            if verb == "REVOKE" and set(privileges) == {ALL, GRANT_OPTION}:
                return AccountStatement("REVOKE ALL", tuple(self._names()), optional)
            raise cursor.error()
        cursor.expect("ON")
        if cursor.accept_any("PROCEDURE", "FUNCTION"):
            raise Unsupported(f"{verb} on routines")
        cursor.accept("TABLE")
        database, table = self._level()
        self._check(privileges, database, table)
        if columns and not table:
            raise InvalidStatement(Condition.ILLEGAL_GRANT)
        cursor.expect(word)
        users = self._names()
        if verb == "GRANT" and cursor.accept("WITH"):
            cursor.expect("GRANT", "OPTION")
            privileges.append(GRANT_OPTION)
        return AccountStatement(verb, tuple(users), optional, tuple(privileges), database, table, columns=tuple(columns))

    def _is_about_roles(self) -> bool:
        """Whether what is granted is not ON something."""
        cursor = self._cursor
        if cursor.at("ALL"):
            return False
        mark = cursor.mark()
        while not cursor.at_end and not cursor.at_any("ON", "TO", "FROM"):
            cursor.next()
        found = cursor.at_any("TO", "FROM")
        cursor.back_to(mark)
        return bool(found)

    def _grant_roles(self, verb: str, optional: bool) -> AccountStatement:
        cursor = self._cursor
        roles = tuple((each.user, each.host) for each in self._names())
        cursor.expect("TO" if verb == "GRANT" else "FROM")
        users = self._names()
        if cursor.at("WITH", "ADMIN"):
            raise Unsupported("WITH ADMIN OPTION")
        return AccountStatement(f"{verb} ROLE", tuple(users), optional, roles=roles)

    def _privileges(self) -> tuple[list[str], list[tuple[str, str]]]:
        """Those on the whole, and (column, privilege) of those on columns."""
        cursor = self._cursor
        found: list[str] = []
        columns: list[tuple[str, str]] = []
        while True:
            if cursor.accept("ALL"):
                cursor.accept("PRIVILEGES")
                found.append(ALL)
            else:
                words: list[str] = []
                while cursor.token.kind is TokenKind.WORD and not (cursor.at("ON") or cursor.at("TO") or cursor.at("FROM")):
                    words.append(cursor.next().upper)
                if not words:
                    raise cursor.error()
                privilege = " ".join(words)
                if cursor.at("("):
                    columns += [(name, privilege) for name in self._columns(privilege)]
                else:
                    found.append(privilege)
            if not cursor.accept(","):
                return found, columns

    def _columns(self, privilege: str) -> list[str]:
        cursor = self._cursor
        if privilege not in COLUMN_PRIVILEGES:
            raise cursor.error()
        cursor.expect("(")
        found = [cursor.identifier()]
        while cursor.accept(","):
            found.append(cursor.identifier())
        cursor.expect(")")
        return found

    def _level(self) -> tuple[str, str]:
        """(database, table): `*.*`, `*`, `database.*`, `table` or `database.table`."""
        cursor = self._cursor
        if cursor.accept("*"):
            if cursor.accept("."):
                cursor.expect("*")
                return "", ""
            return self._own_database(), ""
        first = cursor.identifier()
        if not cursor.accept("."):
            return self._own_database(), first
        return (first, "") if cursor.accept("*") else (first, cursor.identifier(any_word=True))

    def _own_database(self) -> str:
        if not self._database:
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        return self._database

    def _check(self, privileges: list[str], database: str, table: str) -> None:
        known = {*privileges_at(database, table), ALL, GRANT_OPTION, "USAGE"}
        for each in privileges:
            if each in known or (not database and "_" in each):
                continue
            if each in _KNOWN:
                if database and not table:
                    raise InvalidStatement(Condition.WRONG_USAGE, "DB GRANT", "GLOBAL PRIVILEGES")
                raise InvalidStatement(Condition.ILLEGAL_GRANT)
            if " " in each or "_" not in each:
                raise self._cursor.error()
            raise InvalidStatement(Condition.ILLEGAL_GRANT)

    def _names(self) -> list[UserChange]:
        found = [UserChange(*self.name())]
        while self._cursor.accept(","):
            found.append(UserChange(*self.name()))
        return found
