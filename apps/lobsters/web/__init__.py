"""A small Lobsters front end: front page, story with comments, user, submit, vote. It asks natural queries, and keeps no counters."""
