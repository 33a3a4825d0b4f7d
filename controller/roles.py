"""Roles: accounts that nobody logs in as, whose privileges others take on.

What a role may do, whoever has it active may do, and so on through roles that were granted to roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.accounts import Account, AccountName, shown_name, with_privileges
from dataflow.errors import Condition, InvalidStatement


def reached(accounts: Mapping[AccountName, Account], roles: Iterable[AccountName]) -> list[Account]:
    """The accounts of `roles` and of all that were granted to them, each once."""
    found: dict[AccountName, Account] = {}
    left = list(roles)
    while left:
        name = left.pop(0)
        role = accounts.get(name)
        if role is not None and name not in found:
            found[name] = role
            left += role.roles
    return list(found.values())


def with_roles(
    account: Account | None, active: Iterable[AccountName], accounts: Mapping[AccountName, Account]
) -> Account | None:
    """The account with the privileges of those of its roles that are active."""
    if account is None or not account.roles:
        return account
    grants = account.grants
    for role in reached(accounts, [name for name in active if name in account.roles]):
        for grant in role.grants:
            grants = with_privileges(grants, grant)
    return replace(account, grants=grants)


def granted(account: Account, roles: Iterable[AccountName], accounts: Mapping[AccountName, Account]) -> Account:
    """GRANT role TO account."""
    for role in roles:
        if role not in accounts:
            raise InvalidStatement(Condition.UNKNOWN_AUTHORIZATION, shown_name(role))
        if any(each.name == account.name for each in reached(accounts, [role])):
            raise InvalidStatement(Condition.ROLE_LOOP, shown_name(account.name), shown_name(role))
    return replace(account, roles=tuple(sorted({*account.roles, *roles})))


def taken(account: Account, roles: Iterable[AccountName], accounts: Mapping[AccountName, Account]) -> Account:
    """REVOKE role FROM account, or what DROP ROLE leaves of it."""
    gone = set(roles)
    for role in gone:
        if role not in accounts:
            raise InvalidStatement(Condition.UNKNOWN_AUTHORIZATION, shown_name(role))
    require(account, gone)
    return without(account, gone)


def without(account: Account, gone: set[AccountName]) -> Account:
    if gone.isdisjoint(account.roles):
        return account
    return replace(
        account,
        roles=tuple(each for each in account.roles if each not in gone),
        default_roles=tuple(each for each in account.default_roles if each not in gone),
    )


def renamed(account: Account, old: AccountName, new: AccountName) -> Account:
    if old not in account.roles:
        return account
    roles, default = (
        tuple(sorted(new if each == old else each for each in names)) for names in (account.roles, account.default_roles)
    )
    return replace(account, roles=roles, default_roles=default)


def require(account: Account, roles: Iterable[AccountName]) -> None:
    for role in roles:
        if role not in account.roles:
            raise InvalidStatement(Condition.ROLE_NOT_GRANTED, shown_name(role), shown_name(account.name))
