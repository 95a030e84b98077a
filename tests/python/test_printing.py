"""Printing, against texts that PyTorch 2.13 wrote (`data/printing.json`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytensorlib as torch

CASES = json.loads((Path(__file__).parents[1] / "data" / "printing.json").read_text())


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    yield
    torch.set_printoptions(profile="default")


def case_id(case: dict[str, Any]) -> str:
    return case.get("code") or f"{case['dtype']}-{str(case['values'])[:24]}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_repr_is_that_of_pytorch(case: dict[str, Any]) -> None:
    if "code" in case:
        # The expressions are our own, from the file beside this one.
        tensor = eval(case["code"], {"torch": torch})  # noqa: S307
    else:
        tensor = torch.tensor(case["values"], dtype=getattr(torch, case["dtype"]))
    torch.set_printoptions(**case.get("options", {}))
    assert repr(tensor) == case["text"]
    assert str(tensor) == case["text"]


def test_format_of_one_element_is_that_of_its_number() -> None:
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert f"{torch.tensor(7):03d}" == "007"
    assert f"{torch.tensor([1.0, 2.0])}" == "tensor([1., 2.])"


def test_format_of_many_elements_with_a_specification_raises() -> None:
    with pytest.raises(TypeError):
        format(torch.ones(2), ".2f")


def test_subclass_prints_its_own_name() -> None:
    class Mine(torch.Tensor):
        pass

    assert repr(torch.ones(2).as_subclass(Mine)) == "Mine([1., 1.])"


def test_printoptions_returns_to_what_was_set() -> None:
    before = torch.get_printoptions()
    with torch.printoptions(precision=1, sci_mode=True):
        assert torch.get_printoptions()["precision"] == 1
        assert repr(torch.tensor([1.0])) == "tensor([1.0e+00])"
    assert torch.get_printoptions() == before


def test_printing_a_large_tensor_reads_only_its_edges() -> None:
    text = repr(torch.zeros(1000, 1000))
    assert text.count("0.") == 36
    assert text.count("...") == 7


def test_printing_does_not_record() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    repr(y)
    assert y.grad_fn is node
    assert torch.is_grad_enabled()


def test_default_dtype_decides_what_is_named() -> None:
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert repr(torch.tensor([1.5])) == "tensor([1.5000])"
        assert "dtype=torch.float32" in repr(torch.tensor([1.5], dtype=torch.float32))
    finally:
        torch.set_default_dtype(before)
