"""LevelDB's files as such: whether they are whole, which writes must be in them, room for them, repair.

`persistence.shard_store` opens a database through here, so that damage is found before LevelDB changes anything.
"""
