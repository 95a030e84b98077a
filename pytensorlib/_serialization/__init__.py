"""What `save` and `load` are made of."""
