"""Aggregate functions: the state of a group, exact under removal."""
