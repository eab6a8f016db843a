"""Looks for input that the readers do not survive; README.md beside this file says how to run it.

A finding is an exception that is not of `rl_insight.errors`, a hang, or memory beyond a limit.
"""
