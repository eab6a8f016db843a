"""Tables to tables and findings."""
