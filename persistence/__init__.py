"""What is on disk: the byte encodings of keys and rows, and one LevelDB database per shard."""
