"""The processes of a cluster: started, watched, replaced and stopped."""
