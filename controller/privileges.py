"""Privileges: every statement, over MySQL or HTTP, is checked here before it is carried out.

Errors are MySQL's: 1044 for databases, 1142 for tables, 1143 for columns, 1227 for what concerns the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from controller.account_changes import ALL, AccountStatement
from controller.accounts import GRANT_OPTION, Account, Rights, privileges_at
from controller.catalog import Catalog, CatalogView
from controller.roles import with_roles
from controller.sql.definitions.temporary import temporary_tables
from controller.sql.parameters import ColumnUse
from controller.sql.plan import Delete, Plan, Update
from controller.sql.planner import plan as plan_statement
from controller.sql.planner import tables_of, views_of, written_tables
from controller.sql.references import Need, needs_of
from controller.sql.settings import DEFAULT_SETTINGS, Settings
from controller.sql.text.template import canonical_text
from dataflow.errors import Condition, InvalidStatement

INFORMATION_SCHEMA = "information_schema"
NEEDS_MAX = 2000


class Asker(Protocol):
    """Who asks, and what their statements mean. `rights` are as of the newest `catalog` known."""

    @property
    def account(self) -> Account: ...
    @property
    def host_name(self) -> str: ...
    @property
    def rights(self) -> Rights: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def database(self) -> str | None: ...
    @property
    def settings(self) -> Settings: ...


class PlanNeeds:
    """What plans need, worked out once for each."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, tuple[Need, ...]]] = {}

    def of(self, plan: Plan, sql: str, session: Asker) -> tuple[Need, ...]:
        kept = self._known.get(id(plan))
        if kept is not None and kept[0] is plan:
            return kept[1]
        read = {(table.database, table.name) for table in tables_of(plan)} | {(view.database, view.name) for view in views_of(plan)}
        found = [
            need if plan.views else with_columns(need, plan.uses)
            for need in needs_of(sql, session.database, session.settings)
            if not need.uncertain or (need.database, need.table) in read
        ]
        if isinstance(plan.statement, Update | Delete):  # of one table: what it does not read, it need not be allowed to
            found = [need for need in found if need.privilege != "SELECT" or need.columns != frozenset()]
        needs = tuple(found)
        if len(self._known) >= NEEDS_MAX:
            self._known.clear()
        self._known[id(plan)] = (plan, needs)
        return needs


_PLANS = PlanNeeds()


def with_columns(need: Need, uses: Iterable[ColumnUse]) -> Need:
    """The need of a statement that uses these columns."""
    place = (need.privilege, need.database, need.table)
    found = [column for privilege, database, table, column in uses if (privilege, database, table) == place]
    return replace(need, columns=frozenset(found))


def check_plan(session: Asker, plan: Plan, sql: str) -> None:
    for table in written_tables(plan):
        if not table.formats:  # computed, as those of information_schema: nobody may
            raise denied_database(session, table.database)
    if not session.rights.everything:
        check_needs(session, _PLANS.of(plan, sql, session))
    views = views_of(plan)
    for need in _PLANS.of(plan, sql, session) if views else ():
        view = _stored(session).views.get((need.database, need.table))
        if view in views:
            _check_view(session, plan, view, need.privilege, session.rights)


def _check_view(session: Asker, plan: Plan, view: CatalogView, privilege: str, invoker: Rights) -> None:
    """Whoever reads a view needs rights on its tables, or its definer does: whenever it is read, not just when it was made. Who
    writes through it needs them on the table that is written, too. `invoker` is who names it: the session, or the definer of a view around it.

    What is wrong is not told: whoever may read the view need not know what is in it.
    """
    rights = invoker if view.invoker else _definer_rights(session, view)
    written = {(table.database, table.name) for table in written_tables(plan)} | {(through.database, through.name) for through in plan.views}
    # It never reads temporary tables, so they do not count.
    for need in _view_needs(view):
        name = (need.database, need.table)
        wanted = (need,) if privilege == "SELECT" or name not in written else (need, replace(need, privilege=privilege))
        if not all(_has(session, plan, view, rights, each) for each in wanted):
            raise InvalidStatement(Condition.VIEW_INVALID, view.database, view.name)
        inner = _stored(session).views.get(name)
        if inner is not None:
            _check_view(session, plan, inner, wanted[-1].privilege, rights)


def _has(session: Asker, plan: Plan, view: CatalogView, rights: Rights, need: Need) -> bool:
    """Whether these rights are what the view needs."""
    if rights.everything or need.database.lower() == INFORMATION_SCHEMA or need.privilege in rights.on_table(need.database, need.table):
        return True
    if not rights.has_columns(need.database, need.table):
        return False
    uses = plan.uses if need.privilege != "SELECT" else _view_uses(session, view)
    return _missing(rights, with_columns(need, uses)) == []


def _view_uses(session: Asker, view: CatalogView) -> Iterable[ColumnUse]:
    select = canonical_text(view.select, DEFAULT_SETTINGS)
    return plan_statement(select, _stored(session), view.default_database or None, DEFAULT_SETTINGS).uses


def _stored(session: Asker) -> Catalog:
    """Without temporary tables, which views never read."""
    return session.catalog.stored or session.catalog


def _missing(rights: Rights, need: Need) -> list[str] | None:
    """The columns that the privilege is missing on; None if it is missing on the table."""
    held = rights.on_columns(need.database, need.table, need.privilege)
    if not held or need.columns is None:
        return None
    return sorted(each for each in need.columns if each != "*" and each.lower() not in held)


@lru_cache(maxsize=NEEDS_MAX)
def _view_needs(view: CatalogView) -> tuple[Need, ...]:
    needs = needs_of(view.select, view.default_database or None, DEFAULT_SETTINGS)
    return tuple(need for need in needs if not need.uncertain)


def _definer_rights(session: Asker, view: CatalogView) -> Rights:
    accounts = session.catalog.known_accounts
    definer = accounts.get(view.definer)
    if definer is not None:
        return _rights_of(with_roles(definer, definer.default_roles, accounts) or definer)
    if session.rights.has_any("SUPER"):
        raise InvalidStatement(Condition.DEFINER_MISSING, *view.definer)
    raise InvalidStatement(Condition.ACCESS_DENIED, *session.account.name, "YES")


@lru_cache(maxsize=256)
def _rights_of(account: Account) -> Rights:
    return Rights(account)


def check_text(session: Asker, sql: str) -> None:
    """For statements that cannot be planned: who may not see a table does not learn what is wrong with it."""
    if not session.rights.everything:
        check_needs(session, [need for need in needs_of(sql, session.database, session.settings) if not need.uncertain])


def check_needs(session: Asker, needs: Iterable[Need]) -> None:
    _check_needs(session, needs, temporary_names(session))


def _check_needs(session: Asker, needs: Iterable[Need], own: set[tuple[str, str]]) -> None:
    """`own` are tables that the session may do anything with."""
    rights = session.rights
    for need in needs:
        if (need.database, need.table) in own:
            continue
        if need.database.lower() == INFORMATION_SCHEMA:
            if need.privilege != "SELECT":
                raise denied_database(session, need.database)
            continue
        if need.table:
            if need.privilege not in rights.on_table(need.database, need.table):
                missing = _missing(rights, need)
                if missing is None or (missing and "*" in (need.columns or ())):
                    raise denied_table(session, need.privilege, need.table)
                if missing:
                    raise denied_column(session, need.privilege, missing[0], need.table)
        elif need.privilege not in rights.on_database(need.database):
            raise denied_database(session, need.database)


def temporary_names(session: Asker) -> set[tuple[str, str]]:
    """A session may do anything with its own temporary tables."""
    owner = session.settings.owner
    if not owner:
        return set()
    found = temporary_tables(session.catalog, owner)
    return {(table.database, table.name) for table in found.values()}


def denied_database(session: Asker, database: str) -> InvalidStatement:
    return InvalidStatement(Condition.ACCESS_DENIED_DB, *session.account.name, database)


def denied_table(session: Asker, command: str, table: str) -> InvalidStatement:
    user, host = session.account.user, session.host_name
    return InvalidStatement(Condition.TABLE_ACCESS_DENIED, command, user, host, table)


def denied_column(session: Asker, command: str, column: str, table: str) -> InvalidStatement:
    user, host = session.account.user, session.host_name
    return InvalidStatement(Condition.COLUMN_ACCESS_DENIED, command, user, host, column, table)


def check_global(session: Asker, *privileges: str) -> None:
    """One of these privileges on everything."""
    if not session.rights.has_any(*privileges):
        raise InvalidStatement(Condition.SPECIFIC_ACCESS_DENIED, " or ".join(privileges))


def sees_database(session: Asker, database: str) -> bool:
    return database.lower() == INFORMATION_SCHEMA or session.rights.sees_database(database)


def check_sees_database(session: Asker, database: str) -> None:
    if not session.rights.everything and not sees_database(session, database):
        raise denied_database(session, database)


def check_sees_table(session: Asker, database: str | None, table: str) -> None:
    rights = session.rights
    if rights.everything or not database or database.lower() == INFORMATION_SCHEMA:
        return
    if (database, table) in temporary_names(session):
        return
    if not rights.sees_table(database, table):
        raise denied_table(session, "SELECT", table)


# --- accounts


def check_account_statement(session: Asker, statement: AccountStatement) -> None:
    rights = session.rights
    own = all((user.user, user.host) == session.account.name for user in statement.users)
    match statement.action:
        case "GRANT" | "REVOKE":
            _check_may_grant(session, rights, statement)
        case "ALTER USER" if own and all(
            user.locked is None and user.needs_tls is None and user.expired is None for user in statement.users
        ):
            pass  # everyone may change their own password
        case "DEFAULT ROLE" if own:
            pass
        case "GRANT ROLE" | "REVOKE ROLE":
            check_global(session, "ROLE_ADMIN", "SUPER")
        case "CREATE ROLE" | "DROP ROLE":
            check_global(session, statement.action, "CREATE USER")
        case _:
            check_global(session, "CREATE USER")


def _check_may_grant(session: Asker, rights: Rights, statement: AccountStatement) -> None:
    """One can hand on only what one has, at that level, WITH GRANT OPTION."""
    database, table = statement.database, statement.table
    if table:
        held = rights.on_table(database, table)
    else:
        held = rights.on_database(database) if database else rights.globally
    wanted = {*statement.privileges, GRANT_OPTION} - {"USAGE"}
    for column, privilege in statement.columns:
        if column.lower() not in rights.on_columns(database, table, privilege):
            wanted.add(privilege)
    if ALL in wanted:
        wanted = (wanted - {ALL}).union(privileges_at(database, table))
    missing = {each for each in wanted if each not in held and not ("_" in each and rights.has_any(each))}
    if not missing:
        return
    if table:
        raise denied_table(session, statement.action, table)
    if database:
        raise denied_database(session, database)
    raise InvalidStatement(Condition.ACCESS_DENIED, session.account.user, session.host_name, "YES")
