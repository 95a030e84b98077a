"""Passes that need to know little of the operators."""
