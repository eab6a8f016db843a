"""RL-Insight: offline performance insight for reinforcement-learning training."""

__version__ = "0.1.0"
