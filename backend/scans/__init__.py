"""Reading much as of one epoch: scans by column, kept epochs, jobs over all shards."""
