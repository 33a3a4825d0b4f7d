"""What runs: worker processes inside Spark, transport, statement execution, supervisor, command line."""
