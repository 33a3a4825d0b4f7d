"""The vote application of the Noria paper (section 8.2): stories, votes, and a story with its votes counted.

The same reads and votes for every system it is compared on, each in the way its users would
write them, and the load that is put on it. `millrace bench vote` starts the systems.
"""
