"""Evaluation a column at a time, by numpy and Arrow, where that gives exactly what evaluation by rows gives.

Whatever cannot be had exactly (a number that leaves 64 bits, a value that gives a warning or an error) is `GaveUp`: rows are
evaluated one by one then, from the beginning.
"""
