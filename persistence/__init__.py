"""Base tables on disk: how keys and rows become bytes, and one LevelDB database for each shard.

The only package that imports plyvel. It knows tables and epochs, but no SQL and no sockets.
"""
