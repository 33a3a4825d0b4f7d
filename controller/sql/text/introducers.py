"""Introducers, `_charset'…'`: the literal is the bytes that a client has sent, as a text of that character set."""

from __future__ import annotations

import re

from controller.sql.settings import Settings
from controller.sql.text.lexer import TokenKind, string_value, tokens

_INTRODUCED = re.compile(r"""(_\w+)\s*(['"].*)""", re.DOTALL)


def with_bytes_sent(sql: str, settings: Settings) -> str:
    """The statement with each _charset'…' as the bytes that the client sent: who reads its texts again may write in another character set."""
    pieces: list[str] = []
    position = 0
    for token in tokens(sql, settings.ansi_quotes, settings.backslash_escapes):
        found = _INTRODUCED.fullmatch(token.text) if token.kind is TokenKind.STRING else None
        if found is not None:
            sent = string_value(found[2], settings.backslash_escapes).encode(settings.client_codec, "surrogateescape")
            pieces += [sql[position : token.start], f"{found[1]} X'{sent.hex()}'"]
            position = token.end
    return "".join([*pieces, sql[position:]])
