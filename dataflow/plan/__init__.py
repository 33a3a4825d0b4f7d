"""Plans of views as data: nodes, pipelines, exchanges between shards."""
