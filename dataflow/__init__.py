"""The pure core: values, rows, deltas, expressions, arrangements, operators, epochs.

Nothing in here opens a socket, a file or a thread, or looks at a clock.
"""
