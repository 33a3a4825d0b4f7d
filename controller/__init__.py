"""From SQL to plans, and what the cluster knows about itself: catalog, membership, election."""
