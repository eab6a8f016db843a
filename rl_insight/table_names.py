"""The names of the tables, for those who need not wait for their schemas (`rl_insight.schema`)."""

# The tables of a timeline run besides `sources`, which every run has.
TIMELINE_TABLES = ("lanes", "spans", "breakdown", "activity", "collectives", "ops")

# The tables of a heatmap run besides `sources`.
HEATMAP_TABLES = ("expert_load", "expert_balance")
