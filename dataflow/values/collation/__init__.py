"""Collations: which texts are equal and which comes first.

`names` is what clients may call them, `keys` turns texts into comparable bytes, `coercion`
decides which collation an operation uses.
"""

from dataflow.values.collation.keys import (
    character_key,
    collation_bytes,
    collation_key,
    is_case_sensitive,
    prefix_key,
)
from dataflow.values.collation.names import (
    BY_ID,
    BY_NAME,
    CHARSETS,
    COLLATIONS,
    Charset,
    Collation,
    canonical,
    collation,
)

__all__ = [
    "BY_ID",
    "BY_NAME",
    "CHARSETS",
    "COLLATIONS",
    "Charset",
    "Collation",
    "canonical",
    "character_key",
    "collation",
    "collation_bytes",
    "collation_key",
    "is_case_sensitive",
    "prefix_key",
]
