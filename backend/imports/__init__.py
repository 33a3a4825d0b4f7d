"""`millrace import`: schema and rows of a live MySQL or MariaDB, of dumps and of files, into a running millrace.

What is to be read is cut into *units*: a range of a table's keys, or a file. A unit is read in order and stored in *steps*, each one
transaction of some thousand rows and a line of the *journal* (`journal.py`) that says how far the unit is. So an import that
was killed goes on where it was, and no row is stored twice.
"""
