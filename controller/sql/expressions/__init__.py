"""sqlglot's expressions as those of the dataflow."""
