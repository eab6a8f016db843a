"""Tables to tables: what is in the merged tables, and what follows from them."""
