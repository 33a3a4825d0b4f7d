"""Rows computed from the base tables: upqueries that keep nothing."""
