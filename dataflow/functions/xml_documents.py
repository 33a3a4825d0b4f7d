"""EXTRACTVALUE and UPDATEXML.

A document is a fragment: it may have several elements at its top, and text beside them. The standard library's expat reads it.
What is not well-formed is NULL with a warning. An element may repeat an attribute, as in MySQL: expat, which forbids that, reads such a
document under other names. What a DOCTYPE defines has no effect. `&lt;` and the like stay as they are written, as in MySQL, so nothing grows
while it is read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import islice
from xml.parsers import expat

from dataflow.errors import Condition
from dataflow.expressions.notices import say
from dataflow.expressions.user_variables import UserVariables
from dataflow.functions.registry import Domain, function
from dataflow.functions.strings import Arguments, string_type
from dataflow.functions.xml_nodes import TEXT, XmlNode
from dataflow.functions.xml_paths import Focus, XmlValue, xml_path
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.collation.keys import Key, collation_key
from dataflow.values.conversion.texts import decode, encode
from dataflow.values.long_values import weigh, windows, windows_of
from dataflow.values.numerals import format_double
from dataflow.values.types import SqlType

TOP, BOTTOM = b"<document>", b"</document>"
NODE_CHARACTERS = 256
"""So much memory a node takes, about."""
PROLOGUE = re.compile(rb"\s*<\?xml\b[^>]*\?>|\s*<!DOCTYPE\b[^>\[]*(\[[^\]]*\]\s*)?>", re.IGNORECASE)
AMPERSAND, STAND_IN = b"&", b"\x7f"
"""No entities: while it is read, another character stands for `&`, as long as it and as legal."""

TAG = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^\s<>/!?]+)(\s[^<>\"']*(?:\"[^\"]*\"[^<>\"']*|'[^']*'[^<>\"']*)+)", re.DOTALL)
ATTRIBUTE = re.compile(rb"""\s([^\s=<>/\"']+)\s*=\s*("[^"]*"|'[^']*')""")
WITH_VARIABLES = {"extractvalue": "extractvalue with variables", "updatexml": "updatexml with variables"}
"""Of statements that read user variables, which the path may name: their first argument has all of them."""
REPEATED = "\u3029"
"""Begins what is added to an attribute's name that its element had before."""


def _text(arguments: Arguments) -> SqlType:
    return string_type(arguments[:1], None)


def parsed(document: bytes) -> XmlNode | None:
    """The document's node; None and a warning if it is not well-formed. `start` and `end` count from its first byte."""
    try:
        return _read(document)
    except expat.ExpatError as error:
        if expat.ErrorString(error.code) == expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE and REPEATED.encode() not in document:
            return _with_repeated(document)
        _not_well_formed(error)
        return None


def _not_well_formed(error: expat.ExpatError) -> None:
    place = error.offset - len(TOP) if error.lineno == 1 else error.offset
    say(Condition.WRONG_MOMENT_LITERAL, "XML", f"parse error at line {error.lineno} pos {place}: {expat.ErrorString(error.code)}")


def _with_repeated(document: bytes) -> XmlNode | None:
    """Of a document in which elements repeat attributes."""
    pieces, added = list[bytes](), list[tuple[int, int]]()
    copied = grown = 0
    tags = TAG.finditer(document)
    for _ in windows_of(1 << 62):
        tag = next(tags, None)
        if tag is None:
            break
        seen = set[bytes]()
        for found in ATTRIBUTE.finditer(document, *tag.span(2)) if tag[1] else ():
            if found[1] in seen:
                suffix = f"{REPEATED}{len(added)}".encode()
                pieces += [document[copied : found.end(1)], suffix]
                copied, grown = found.end(1), grown + len(suffix)
                added.append((found.end(1) + grown, grown))
            seen.add(found[1])
    try:
        root = _read(b"".join([*pieces, document[copied:]]))
    except expat.ExpatError as error:
        _not_well_formed(error)
        return None

    def before(place: int) -> int:
        index = bisect_right(added, (place, 1 << 62))
        return place - added[index - 1][1] if index else place

    return None if root is None else _moved(root, before)


def _moved(root: XmlNode, before: Callable[[int], int]) -> XmlNode:
    for node in (root, *root.below()):
        node.start, node.end = before(node.start), before(node.end)
        for attribute in node.attributes:
            attribute.name = attribute.name.split(REPEATED)[0]
            attribute.start = before(attribute.start)
    return root


def _read(document: bytes) -> XmlNode | None:
    root = XmlNode("", 0, end=len(document))
    open_nodes = [root]
    count = 0
    reader = expat.ParserCreate("utf-8")
    reader.buffer_text = True

    def add(name: str, parent: XmlNode, value: str = "") -> XmlNode:
        nonlocal count
        count += 1
        weigh(NODE_CHARACTERS)
        return XmlNode(name, count, parent, value.replace("\x7f", "&") if escapes else value, start=reader.CurrentByteIndex - len(TOP))

    def begin(name: str, attributes: list[str]) -> None:
        if count or len(open_nodes) > 1 or name != "document":
            node = add(name, open_nodes[-1])
            node.attributes = [add(f"@{key}", node, value) for key, value in zip(attributes[::2], attributes[1::2])]
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
        else:
            open_nodes.append(root)

    def end(name: str) -> None:
        node, place = open_nodes.pop(), reader.CurrentByteIndex - len(TOP)
        if node is not root:  # expat is at the closing tag, or behind a tag that closes itself
            node.end = place if not node.children and document.endswith(b"/>", 0, place) else document.index(b">", place) + 1

    def write(text: str) -> None:
        open_nodes[-1].children.append(add(TEXT, open_nodes[-1], text))

    escapes = AMPERSAND in document
    if escapes and STAND_IN in document:
        say(Condition.WRONG_MOMENT_LITERAL, "XML", "a character DEL beside &")
        return None
    while (prologue := PROLOGUE.match(document)) is not None and document[: prologue.end()].strip():
        document = b" " * prologue.end() + document[prologue.end() :]
    reader.ordered_attributes = True
    reader.StartElementHandler, reader.EndElementHandler, reader.CharacterDataHandler = begin, end, write
    reader.Parse(TOP, False)
    for window in windows(document):
        reader.Parse(window.replace(AMPERSAND, STAND_IN), False)
    reader.Parse(BOTTOM, True)
    return root


def _key(arguments: Arguments) -> Key:
    return collation_key(merged_collation(arguments[:2], "extractvalue"))


Update = Callable[[UserVariables | None, str, str, str], str | None]


def _extract(arguments: Arguments) -> Callable[[UserVariables | None, str, str], str | None]:
    key = _key(arguments)

    def extract(variables: UserVariables | None, document: str, path: str) -> str | None:
        find = xml_path(path)
        root = parsed(encode(document))
        return None if root is None else _shown(find(Focus(root, 1, 1, key, variables)))

    return extract


@function("extractvalue", arguments=(Domain.TEXT, Domain.TEXT), result=_text, specialise=True)
def extractvalue(arguments: Arguments) -> Callable[[str, str], str | None]:
    return partial(_extract(arguments), None)


@function(
    WITH_VARIABLES["extractvalue"], arguments=(Domain.ANY, Domain.TEXT, Domain.TEXT), result=lambda arguments: _text(arguments[1:]),
    specialise=True, volatile=True,
)  # fmt: skip
def extractvalue_with_variables(arguments: Arguments) -> Callable[[UserVariables, str, str], str | None]:
    return _extract(arguments[1:])


def _shown(value: XmlValue) -> str | None:
    if isinstance(value, list):
        texts = {text.number: text.value for node in value for text in node.texts}
        return " ".join([texts[number] for number in sorted(texts)])
    return format_double(float(value)) if isinstance(value, float | bool) else value


def _update(arguments: Arguments) -> Update:
    """The document with another text in the place of what the path finds, if that is one node."""
    key = _key(arguments)

    def update(variables: UserVariables | None, document: str, path: str, replacement: str) -> str | None:
        find, stored = xml_path(path), encode(document)
        root = parsed(stored)
        if root is None:
            return None
        found = find(Focus(root, 1, 1, key, variables))
        if not isinstance(found, list):
            return None
        if len(found) != 1:
            return document
        start, end = _span(found[0], stored)
        return decode(stored[:start]) + replacement + decode(stored[end:])

    return update


@function("updatexml", arguments=(Domain.TEXT, Domain.TEXT, Domain.TEXT), result=_text, specialise=True)
def updatexml(arguments: Arguments) -> Callable[[str, str, str], str | None]:
    return partial(_update(arguments), None)


@function(
    WITH_VARIABLES["updatexml"], arguments=(Domain.ANY, Domain.TEXT, Domain.TEXT, Domain.TEXT),
    result=lambda arguments: _text(arguments[1:]), specialise=True, volatile=True,
)  # fmt: skip
def updatexml_with_variables(arguments: Arguments) -> Update:
    return _update(arguments[1:])


def _span(node: XmlNode, document: bytes) -> tuple[int, int]:
    if node.name == TEXT and node.parent is not None:
        node = node.parent  # as MySQL does
    if node.is_element:
        return node.start, node.end
    name = re.escape(encode(node.name[1:]))
    element = node.parent
    assert element is not None
    same = [each for each in element.attributes if each.name == node.name]
    found = list(islice(re.compile(rb"""\s%s\s*=\s*("[^"]*"|'[^']*')""" % name).finditer(document, node.start), len(same)))
    which = found[same.index(node)]
    return which.start() + 1, which.end()
