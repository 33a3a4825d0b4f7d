"""Python written for the nodes of a plan: one function for each run of stages."""
