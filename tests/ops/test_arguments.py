"""What arguments may be: sizes, operands, data."""

import math

import child
import numpy as np
import pytest

import pytensorlib as torch


class Index:
    def __index__(self):
        return 2


def test_sizes_may_be_anything_that_stands_for_an_integer():
    assert torch.ones((np.array(3), np.int64(4))).shape == (3, 4)
    assert torch.ones(6).reshape(np.array(2), 3).shape == (2, 3)
    assert torch.zeros(np.array(3)).shape == (3,)
    assert torch.zeros(Index(), 3).shape == (2, 3)
    for bad in (np.array(2.0), np.array([1, 2]), 2.0, True):
        with pytest.raises(TypeError):
            torch.ones((bad, 2))


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
def test_nested_data_may_hold_arrays_without_dimensions():
    x = torch.tensor(((7, np.array(5)), (np.array(9), 5.0)))
    assert x.tolist() == [[7, 5], [9, 5]]
    assert x.dtype == torch.float32
    assert torch.tensor([np.array(True)]).dtype == torch.bool


class Other:
    def __radd__(self, other):
        return "added"

    def __rmatmul__(self, other):
        return "multiplied"


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and"])
def test_in_place_operators_leave_unknown_operands_to_python(name):
    x = torch.ones(2)
    method = f"__i{name}__"
    assert getattr(x, method)(object()) is NotImplemented
    assert getattr(x, method)("no") is NotImplemented


def test_augmented_assignment_asks_the_other_operand():
    x = torch.ones(2)
    x += Other()
    assert x == "added"
    x = torch.ones(2)
    x @= Other()
    assert x == "multiplied"
    x = torch.ones(2)
    with pytest.raises(TypeError, match="unsupported operand"):
        x -= object()
    with pytest.raises(RuntimeError, match="must match"):
        x += torch.ones(3)


def test_asarray_takes_capsules_and_buffers():
    x = torch.arange(3.0)
    y = torch.asarray(x.__dlpack__())
    assert y.data_ptr() == x.data_ptr()
    half = np.array([1, 2], dtype=np.float16)
    y = torch.asarray(memoryview(half), dtype=torch.float16)
    half[0] = 5
    assert y.tolist() == [5, 2]


def in_a_child(code):
    code = f"import warnings\nimport numpy as np\nimport pytensorlib as torch\n{code}"
    child.run(code, "-W", "error")


def test_masks_of_bytes_are_deprecated():
    x = torch.arange(3.0)
    mask = torch.tensor([1, 0, 1], dtype=torch.uint8)
    with pytest.warns(UserWarning, match="torch.bool instead"):
        assert x[mask].tolist() == [0, 2]
    with pytest.warns(UserWarning, match="torch.bool instead"):
        x[mask] = 5
    assert x.tolist() == [5, 1, 5]


def test_list_of_arrays_warns_once():
    in_a_child("""
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        assert torch.tensor([np.ones(2), np.ones(2)]).shape == (2, 2)
assert len(caught) == 1 and "extremely slow" in str(caught[0].message)
""")


class Longer(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(7))

    def __len__(self):
        return 5


@pytest.mark.parametrize("workers", [0, 1])
def test_loader_warns_where_a_stream_is_longer_than_it_said(workers):
    loader = torch.utils.data.DataLoader(Longer(), num_workers=workers)
    assert sum(1 for _ in loader) == 7
    assert len(loader) == 5
    with pytest.warns(UserWarning, match="reported to be 5 "):
        assert sum(1 for _ in loader) == 7


def test_windows_of_absurd_length_raise_at_once():
    with pytest.raises(RuntimeError):
        torch.signal.windows.hann(2**50)


@pytest.mark.parametrize("window", torch.signal.windows.__all__)
def test_windows_of_a_fractional_length_raise(window):
    extra = {"a": [0.5, 0.5]} if window == "general_cosine" else {}
    with pytest.raises(TypeError):
        getattr(torch.signal.windows, window)(4.5, **extra)


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        # A string as the first item is a list of strings without end; elsewhere it is no number.
        (["a", 1], ValueError, "too many dimensions 'str'"),
        ([["ab"], ["c"]], ValueError, "too many dimensions 'str'"),
        ([1, "a"], TypeError, "new(): invalid data type 'str'"),
        ([[1], ["a"]], TypeError, "new(): invalid data type 'str'"),
        ([b"ab"], TypeError, "new(): invalid data type 'bytes'"),
        ([1, b"a"], TypeError, "new(): invalid data type 'bytes'"),
    ],
)
def test_text_among_data_raises_as_pytorch_does(data, kind, text):
    with pytest.raises(kind) as caught:
        torch.tensor(data)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: float(torch.ones(2)), ValueError, "only one element tensors can be"),
        (lambda: int(torch.ones(0)), ValueError, "only one element tensors can be"),
        (lambda: complex(torch.ones(2)), ValueError, "only one element tensors can be"),
        (lambda: torch.ones(2).item(), RuntimeError, "2 elements cannot be converted"),
        (lambda: torch.ones(2) + 2**70, OverflowError, "int too big to convert"),
        (lambda: torch.ones(2) < -(2**70), OverflowError, "int too big to convert"),
        (lambda: torch.full((2,), 2**70), OverflowError, "int too big to convert"),
        (lambda: torch.ones(2).sum(2**70), ValueError, "Overflow when unpacking long long"),
        (lambda: torch.eye(2**70), ValueError, "Overflow when unpacking long long"),
        (
            lambda: torch.ones(2).index_fill(0, torch.tensor([0]), 1j),
            RuntimeError,
            "Converting complex Scalar to non-complex type is not supported",
        ),
        (lambda: torch.lerp(torch.ones(2), torch.ones(2), 1j), RuntimeError, "cannot be converted"),
        (
            lambda: torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2), reduction=[1.5]),
            ValueError,
            "is not a valid value for reduction",
        ),
        (lambda: ~torch.ones(2), TypeError, "only implemented on integer and Boolean-type"),
        (lambda: torch.Generator("foo"), RuntimeError, "Expected one of"),
        (lambda: torch.Generator(3.5), TypeError, "must be torch.device, not float"),
        (
            lambda: torch.tensordot(torch.ones(2), torch.ones(2), "a"),
            RuntimeError,
            "tensordot expects dims to be int or",
        ),
    ],
)
def test_mistakes_raise_the_class_of_error_that_pytorch_raises(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
    assert torch.Generator("cpu").initial_seed() == torch.Generator(None).initial_seed()
    assert float(torch.ones(1, 1)) == int(torch.tensor([[1.7]])) == 1


INF, NAN = math.inf, math.nan


def test_sizes_may_hold_a_bool_behind_the_first() -> None:
    assert torch.zeros((3, True, 2)).shape == (3, 1, 2)
    assert torch.ones(2, 3).expand(4, 2, 3).permute((2, True, 0)).shape == (3, 2, 4)
    assert torch.tile(torch.ones(2), (2, True)).shape == (2, 2)
    with pytest.raises(TypeError):
        torch.zeros((True, 3))


def test_range_warns() -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        torch.range(0, 4)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_range_includes_its_end() -> None:
    assert torch.range(0, 4).tolist() == [0, 1, 2, 3, 4]
    assert torch.range(5, 1, -2).tolist() == [5, 3, 1]
    assert torch.range(0, 4.5).tolist() == [0, 1, 2, 3, 4]
    assert torch.range(2.5, 4.5, dtype=torch.int32).tolist() == [2, 3, 4]
    assert len(torch.range(0.0, 1, 0.1)) == 11
    assert torch.range(1, 1).dtype == torch.float32
    for bad in ((0, 4, 0), (4, 0), (0, INF)):
        with pytest.raises(RuntimeError):
            torch.range(*bad)


def test_roll_of_a_number_has_no_dimension_to_roll() -> None:
    with pytest.raises(IndexError, match="no dimensions"):
        torch.roll(torch.tensor(1.0), 1, 0)
    assert torch.roll(torch.tensor(1.0), 1).item() == 1


def test_view_copy_takes_strides_that_no_view_can_take() -> None:
    x = torch.arange(12).reshape(3, 4).t()
    assert torch.view_copy(x, (2, 6)).tolist() == x.reshape(2, 6).tolist()


def test_matrix_transpose_of_a_number_is_the_number() -> None:
    assert torch.tensor(2.0).mT.item() == 2


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (torch.float32, "must be real number, not NoneType"),
        (torch.complex64, "must be real number, not NoneType"),
        (torch.int64, "'NoneType' object cannot be interpreted as an integer"),
        (torch.bool, "'NoneType' object cannot be interpreted as an integer"),
    ],
)
def test_data_that_is_no_number_of_the_type_asked_for_is_refused(dtype, text: str) -> None:
    for data in ([1, None], None):
        with pytest.raises(TypeError, match=text):
            torch.tensor(data, dtype=dtype)
    with pytest.raises(TypeError, match="must be real number, not NoneType"):
        torch.Tensor([None])
