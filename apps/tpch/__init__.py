"""TPC-H: its tables, its 22 queries as views, and small data in which every query finds something.

The queries have the parameters that the specification gives for validation. Nothing here is
a benchmark result in the sense of the TPC.
"""
