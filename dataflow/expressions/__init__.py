"""Expressions as data, and as compiled Python."""
