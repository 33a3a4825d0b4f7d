"""EXTRACTVALUE and UPDATEXML.

A document is a fragment: it may have several elements at its top, and text beside them. The standard library's expat reads it.
What is not well-formed is NULL with a warning; so are documents with repeated attributes and with definitions in a DOCTYPE, which
MySQL takes. `&lt;` and the like stay as they are written, as in MySQL, so nothing grows while it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.parsers import expat

from dataflow.errors import Condition
from dataflow.expressions.notices import say
from dataflow.functions.registry import Domain, function
from dataflow.functions.strings import Arguments, string_type
from dataflow.functions.xml_paths import TEXT, Focus, XmlNode, XmlValue, xml_path
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.collation.keys import Key, collation_key
from dataflow.values.conversion.texts import decode, encode
from dataflow.values.long_values import weigh, windows
from dataflow.values.numerals import format_double
from dataflow.values.types import SqlType

TOP, BOTTOM = b"<document>", b"</document>"
NODE_CHARACTERS = 256
"""So much memory a node takes, about."""
PROLOGUE = re.compile(rb"\s*<\?xml\b[^>]*\?>|\s*<!DOCTYPE\b[^>\[]*>", re.IGNORECASE)
AMPERSAND, STAND_IN = b"&", b"\x7f"
"""No entities: while it is read, another character stands for `&`, as long as it and as legal."""


def _text(arguments: Arguments) -> SqlType:
    return string_type(arguments[:1], None)


def parsed(document: bytes) -> XmlNode | None:
    """The document's node; None and a warning if it is not well-formed. `start` and `end` count from its first byte."""
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
    try:
        reader.Parse(TOP, False)
        for window in windows(document):
            reader.Parse(window.replace(AMPERSAND, STAND_IN), False)
        reader.Parse(BOTTOM, True)
    except expat.ExpatError as error:
        place = error.offset - len(TOP) if error.lineno == 1 else error.offset
        message = f"parse error at line {error.lineno} pos {place}: {expat.ErrorString(error.code)}"
        say(Condition.WRONG_MOMENT_LITERAL, "XML", message)
        return None
    return root


def _key(arguments: Arguments) -> Key:
    return collation_key(merged_collation(arguments[:2], "extractvalue"))


@function("extractvalue", arguments=(Domain.TEXT, Domain.TEXT), result=_text, specialise=True)
def extractvalue(arguments: Arguments) -> Callable[[str, str], str | None]:
    key = _key(arguments)

    def extract(document: str, path: str) -> str | None:
        find = xml_path(path)
        root = parsed(encode(document))
        return None if root is None else _shown(find(Focus(root, 1, 1, key)))

    return extract


def _shown(value: XmlValue) -> str:
    if isinstance(value, list):
        texts = {text.number: text.value for node in value for text in node.texts}
        return " ".join([texts[number] for number in sorted(texts)])
    return format_double(float(value)) if isinstance(value, float | bool) else value


@function("updatexml", arguments=(Domain.TEXT, Domain.TEXT, Domain.TEXT), result=_text, specialise=True)
def updatexml(arguments: Arguments) -> Callable[[str, str, str], str | None]:
    """The document with another text in the place of what the path finds, if that is one node."""
    key = _key(arguments)

    def update(document: str, path: str, replacement: str) -> str | None:
        find, stored = xml_path(path), encode(document)
        root = parsed(stored)
        if root is None:
            return None
        found = find(Focus(root, 1, 1, key))
        if not isinstance(found, list):
            return None
        if len(found) != 1:
            return document
        start, end = _span(found[0], stored)
        return decode(stored[:start]) + replacement + decode(stored[end:])

    return update


def _span(node: XmlNode, document: bytes) -> tuple[int, int]:
    if node.name == TEXT and node.parent is not None:
        node = node.parent  # as MySQL does
    if node.is_element:
        return node.start, node.end
    name = re.escape(encode(node.name[1:]))
    found = re.compile(rb"""\s%s\s*=\s*("[^"]*"|'[^']*')""" % name).search(document, node.start)
    assert found is not None, node.name
    return found.start() + 1, found.end()
