"""`testing.assert_close` and `testing.make_tensor`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

assert_close = torch.testing.assert_close
make_tensor = torch.testing.make_tensor


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1, 1),
        (1, 1.0),
        (1.0, 1.0 + 1e-8),
        (None, None),
        (True, np.bool_(True)),
        ([1, (2.0, None)], (1, [2.0, None])),
        ({"a": [1.0]}, {"a": [1.0 + 1e-9]}),
        (np.ones(3), np.ones(3)),
    ],
)
def test_assert_close_accepts_what_agrees(actual: Any, expected: Any) -> None:
    assert_close(actual, expected, check_dtype=False)


@pytest.mark.parametrize(
    ("dtype", "error", "close"),
    [
        ("float64", 5e-8, True),
        ("float64", 5e-7, False),
        ("float32", 1e-5, True),
        ("float32", 1e-4, False),
        ("float16", 9.765625e-04, True),
        ("float16", 2e-3, False),
        ("bfloat16", 7.8125e-3, True),
        ("bfloat16", 0.0234375, False),
        ("int64", 1, False),
    ],
)
def test_tolerance_follows_the_dtype(dtype: str, error: float, close: bool) -> None:
    one = torch.ones(2, dtype=getattr(torch, dtype))
    other = (one.to(torch.float64) + error).to(one.dtype)
    if close:
        assert_close(other, one)
    else:
        with pytest.raises(AssertionError):
            assert_close(other, one)


def test_message_counts_elements_and_names_the_worst() -> None:
    actual = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    expected = torch.tensor([[1.0, 4.0], [3.0, 4.0]])
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 2.0 at index (0, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (0, 1) (up to 1.3e-06 allowed)"
    )


def test_message_of_exact_comparison_says_equal() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(torch.tensor([1, 2]), torch.tensor([1, 4]))
    assert str(caught.value) == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 2 at index (1,)\n"
        "Greatest relative difference: 0.5 at index (1,)"
    )


def test_message_of_numbers_and_of_nested_items() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close({"a": [1.0, 2.0]}, {"a": [1.0, 4.0]}, rtol=0.1, atol=0.5)
    assert str(caught.value) == (
        "Scalars are not close!\n\nExpected 4.0 but got 2.0.\n"
        "Absolute difference: 2.0 (up to 0.5 allowed)\n"
        "Relative difference: 0.5 (up to 0.1 allowed)\n\n"
        "The failure occurred for item ['a'][1]"
    )


@pytest.mark.parametrize(
    ("actual", "expected", "options", "text"),
    [
        ("torch.ones(2)", "torch.ones(3)", {}, "attribute 'shape' do not match"),
        ("torch.ones(2)", "torch.ones(2).double()", {}, "attribute 'dtype' do not match"),
        ("torch.ones(2, 3).t()", "torch.ones(3, 2)", {"check_stride": True}, "stride"),
        ("[1]", "[1, 2]", {}, "The length of the sequences mismatch: 1 != 2"),
        ("{'a': 1}", "{'b': 1}", {}, "The keys of the mappings do not match"),
        ("None", "1", {}, "None mismatch"),
        ("True", "False", {}, "Booleans mismatch: True is not False"),
        ("float('nan')", "float('nan')", {}, "Scalars are not close"),
        ("1", "1.0", {"check_dtype": True}, "do not match"),
    ],
)
def test_assert_close_rejects(
    actual: str, expected: str, options: dict[str, Any], text: str
) -> None:
    a, e = (eval(code, {"torch": torch}) for code in (actual, expected))  # noqa: S307
    with pytest.raises(AssertionError, match=text):
        assert_close(a, e, **options)


def test_nan_is_equal_only_on_request() -> None:
    x = torch.tensor([float("nan"), 1.0])
    assert_close(x, x.clone(), equal_nan=True)
    with pytest.raises(AssertionError):
        assert_close(x, x.clone())


def test_one_tolerance_alone_raises() -> None:
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified"):
        assert_close(1.0, 1.0, rtol=0.1)


def test_unrelated_inputs_raise() -> None:
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs"):
        assert_close(torch.ones(1), "one")


def test_msg_replaces_or_extends_the_text() -> None:
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^seen: Scalars are not equal"):
        assert_close(1, 2, msg=lambda text: "seen: " + text)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float64"]
)
def test_make_tensor_keeps_to_its_bounds(dtype: str) -> None:
    t = make_tensor(50, 4, dtype=getattr(torch, dtype), device="cpu")
    assert t.shape == (50, 4)
    assert t.dtype == getattr(torch, dtype)
    low = 0 if dtype in ("bool", "uint8") else -9
    values = t.to(torch.float64)
    assert values.min() >= low
    assert values.max() <= (1 if dtype == "bool" else 9)


def test_make_tensor_options() -> None:
    strided = make_tensor((4, 6), dtype=torch.float32, device="cpu", noncontiguous=True)
    assert not strided.is_contiguous()
    assert strided.storage_offset() == 1
    leaf = make_tensor(3, dtype=torch.float32, device="cpu", low=1, high=2, requires_grad=True)
    assert leaf.requires_grad
    assert leaf.is_leaf
    assert leaf.min() >= 1
    nonzero = make_tensor(99, dtype=torch.int64, device="cpu", low=0, high=2, exclude_zero=True)
    assert bool((nonzero == 1).all())


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": torch.int64, "requires_grad": True},
        {"dtype": torch.float32, "low": 2, "high": 1},
        {"dtype": torch.float32, "low": float("nan")},
        {"dtype": torch.uint8, "low": 300, "high": 400},
    ],
)
def test_make_tensor_rejects(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="requires_grad|low|NaN|interval"):
        make_tensor(3, device="cpu", **options)
