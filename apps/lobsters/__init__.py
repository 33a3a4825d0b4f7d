"""The Lobsters workload of the Noria paper: the site, its pages, and a crowd of users.

The baseline variant keeps derived values in columns; the natural one derives them by views. `site` creates and
fills the database, `requests` draws what users ask for, `pages` knows the statements of a page, `load` is a process
of users. The application needs only MySQL drivers, and runs unchanged on every server that speaks MySQL.
"""
