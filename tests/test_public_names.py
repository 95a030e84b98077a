"""PyTorch's public names, as recorded, beside ours."""

from __future__ import annotations

from public_names import COUNTED, NAMES, counted, missing, read, share

# In percent of the names that count; it may only rise.
FLOOR = 69.0


def test_share_of_public_names_that_are_here_does_not_fall() -> None:
    print(f"{share():.2f} % of PyTorch's public names")
    assert share() >= FLOOR


def test_list_of_names_covers_what_counts() -> None:
    rows = read(NAMES)
    assert set(COUNTED) <= set(rows)
    assert sum(len(names) for module, names in rows.items() if counted(module)) > 2400
    assert {"softmax", "float32", "no_grad"} <= set(rows["torch"])
    assert {"conv2d", "relu"} <= set(rows["torch.nn.functional"])
    assert {"svd", "lstsq"} <= set(rows["torch.linalg"])
    assert not missing("torch.special")
