"""Data jobs: queries that Spark evaluates, in the application that holds the workers, over scans by column of one epoch."""
