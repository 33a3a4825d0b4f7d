"""The options of a benchmark: the fields of its `Options`, a frozen dataclass of plain values.

`--some-name VALUE` sets the field `some_name`; one that is False by default is a flag. The
comment of a field is its `help`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import Field, field, fields
from typing import Any, TypeVar

T = TypeVar("T")


def option(default: T, help: str) -> T:
    """A field of an `Options`."""
    found: Any = field(default=default, metadata={"help": help})
    return found  # type: ignore[no-any-return]


def parse_options(options: type[T], benchmark: str, arguments: Sequence[str]) -> T:
    """Ends the process with a message if the arguments are wrong, or ask for help."""
    parser = argparse.ArgumentParser(
        f"millrace bench {benchmark}", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for each in fields(options):  # type: ignore[arg-type]
        name, text = "--" + each.name.replace("_", "-"), each.metadata["help"].replace("%", "%%")
        if each.default is False:
            parser.add_argument(name, action="store_true", help=text)
        else:
            parser.add_argument(name, type=_type(each), default=each.default, help=text)
    return options(**vars(parser.parse_args(arguments)))


def _type(each: Field[Any]) -> type:
    return type(each.default)
