"""Where `functorch` kept its parts before they became PyTorch's."""
