"""The running graph of one shard, alone or among several."""
