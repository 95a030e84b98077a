"""The private home of transforms of functions in PyTorch; what computes is in `func`."""
