"""The nodes of an XML document, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dataflow.values.long_values import windows_of

TEXT = "text()"


@dataclass(eq=False, slots=True)
class XmlNode:
    """An element, an attribute (`@name`), a text (`text()`), or all of a document (an empty name)."""

    name: str
    number: int
    """Its place in the order of the document."""
    parent: XmlNode | None = None
    value: str = ""
    attributes: list[XmlNode] = field(default_factory=list)
    children: list[XmlNode] = field(default_factory=list)
    start: int = 0
    end: int = 0
    """Where it stands in the document's bytes."""

    @property
    def is_element(self) -> bool:
        return self.name != TEXT and not self.name.startswith("@")

    def below(self) -> Iterator[XmlNode]:
        waiting = self.children[::-1]
        for _ in windows_of(1 << 62):
            if not waiting:
                return
            node = waiting.pop()
            yield node
            waiting += node.children[::-1]

    def above(self) -> Iterator[XmlNode]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def texts(self) -> list[XmlNode]:
        """What EXTRACTVALUE shows of a node."""
        return [child for child in self.children if child.name == TEXT] if self.is_element else [self]


Nodes = list[XmlNode]


def in_order(nodes: Iterator[XmlNode]) -> Nodes:
    return sorted({node.number: node for node in nodes}.values(), key=lambda node: node.number)


def root_of(node: XmlNode) -> XmlNode:
    while node.parent is not None:
        node = node.parent
    return node
