"""What passes are made of."""
