"""Statements answered where their packet arrives."""
