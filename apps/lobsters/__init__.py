"""The Lobsters workload: schemas, views, the statements of every page, and how often each comes.

The baseline variant keeps derived values in columns; the natural one derives them by views.
"""
