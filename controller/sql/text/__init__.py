"""Statements as text: tokens, templates and their literals, sqlglot's trees."""
