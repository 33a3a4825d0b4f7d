"""Collations: which texts are equal and which comes first."""
