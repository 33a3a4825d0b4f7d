"""Example applications and workloads. They use only what a user has: a MySQL driver or the client library."""
