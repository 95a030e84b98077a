"""Helpers that find nodes in graphs."""
