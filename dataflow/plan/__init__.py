"""What a view is computed by, as data: nodes, pipelines, exchanges between shards."""
