"""Answers to queries: from shared memory, from a view, or evaluated; then windows, order and limit."""
