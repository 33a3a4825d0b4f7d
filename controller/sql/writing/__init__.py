"""Statements that change rows, planned."""
