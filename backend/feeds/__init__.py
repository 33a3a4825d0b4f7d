"""Change feeds as those who read them have them: what a table or view is recorded as, and its changes over all shards."""
