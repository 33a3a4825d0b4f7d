"""Regular expressions as MySQL 8.0 has them (ICU's syntax), matched in linear time or ended.

`syntax` reads a pattern once and writes it for two engines: RE2, whose time is linear in the text, and
the `regex` library, which backtracks and can be given a time limit. `characters` has the sets of characters
that both are given, so that they agree on them. `engine` chooses the engine by the pattern and the text.
"""

from dataflow.values.regular_expressions.engine import Match, RegularExpression, compiled

__all__ = ["Match", "RegularExpression", "compiled"]
