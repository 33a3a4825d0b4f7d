"""Where index keys get the sort keys of texts from."""

from __future__ import annotations

from collections.abc import Callable


def text_key(collation: str) -> Callable[[str], bytes]:
    """A function from texts to bytes that sort, and are equal, as the collation says."""
    if collation.endswith("_bin"):
        return lambda text: text.encode("utf-8", "surrogatepass")
    return lambda text: text.casefold().encode("utf-8", "surrogatepass")
