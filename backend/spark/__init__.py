"""The data source `millrace` of Spark: scans in, staged rows out, over the MySQL port.

It runs in Spark's Python workers, wherever those are. It knows an address and an account, nothing of the cluster.
"""
