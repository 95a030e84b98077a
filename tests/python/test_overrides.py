"""Subclasses of `Tensor`, and classes that answer for its functions themselves."""

import contextlib
import copy
import inspect
import io
import pickle
from typing import Any

import child
import pytest

import pytensorlib as torch
from pytensorlib import overrides


class Plain(torch.Tensor):
    """Says nothing of its own."""


class Further(Plain):
    pass


def plain(*values):
    return torch.tensor(values).as_subclass(Plain)


def test_results_are_of_the_subclass():
    x = plain(1.0, 2.0)
    one = torch.ones(2)
    results = {
        "add": x + 1,
        "radd": 1 + x,
        "plain first": one + x,
        "rsub": 2 - x,
        "div": x / one,
        "floordiv": 5 // x,
        "neg": -x,
        "abs": abs(x),
        "pow": x**2,
        "lt": x < 2,
        "eq": one == x,
        "matmul": x @ one,
        "item": x[0],
        "method": x.exp(),
        "function": torch.exp(x),
        "keyword": torch.add(one, other=x),
        "list": torch.cat([one, x]),
        "clone": x.clone(),
        "detach": x.detach(),
        "T": x.reshape(1, 2).T,
        "functional": torch.nn.functional.relu(x),
    }
    for name, y in results.items():
        assert type(y) is Plain, name
    values, indices = x.max(0)
    assert type(values) is type(indices) is Plain
    assert [type(part) for part in x.split(1)] == [Plain, Plain]
    assert type(x.sum().item()) is float
    assert results["rsub"].tolist() == [1, 0]
    assert repr(x) == "Plain([1., 2.])"


def test_a_subclass_of_a_subclass_goes_before_it():
    further = torch.ones(2).as_subclass(Further)
    assert type(plain(1.0, 2.0) + further) is Further
    assert type(further * plain(1.0, 2.0)) is Further


def test_in_place_operators_keep_the_object():
    x = plain(1.0, 2.0)
    y = x
    y += 1
    y.mul_(2)
    y[0] = 7
    assert y is x
    assert x.tolist() == [7, 6]


def test_gradients_pass_through_subclasses():
    x = plain(1.0, 2.0).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    assert type((x * x).detach()) is Plain


def test_copies_and_pickles_keep_the_subclass():
    x = plain(1.0, 2.0)
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(twin) is Plain
        assert twin.tolist() == [1, 2]


class Wrapping(torch.Tensor):
    """Holds a tensor in a slot and has no memory of its own."""

    __slots__ = ["elem", "other"]

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_subclass(cls, elem.to("meta"), elem.requires_grad)
        made.elem = elem
        return made

    def clone(self):
        return type(self)(self.elem.clone())


class Stateful(torch.Tensor):
    """Says itself what it keeps."""

    def __getstate__(self):
        return {"kept": self.kept, "more": 7}

    def __setstate__(self, state):
        self.kept, self.more = state["kept"], state["more"]


def saved(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_copies_of_a_wrapping_subclass_have_what_is_in_its_slots():
    x = Wrapping(torch.arange(2.0))
    x.other, x.name_of_mine = 5, "bar"
    deep = copy.deepcopy(x)
    assert type(deep) is Wrapping
    assert deep.elem is not x.elem
    for twin in (deep, pickle.loads(pickle.dumps(x)), saved(x)):
        assert twin.elem.tolist() == [0, 1]
        assert (twin.other, twin.name_of_mine) == (5, "bar")


def test_copies_of_a_subclass_have_the_state_that_it_gives():
    x = torch.ones(2).as_subclass(Stateful)
    x.kept = [1]
    for twin in (copy.copy(x), pickle.loads(pickle.dumps(x)), saved(x)):
        assert type(twin) is Stateful
        assert twin.tolist() == [1, 1]
        assert (twin.kept, twin.more) == ([1], 7)
    assert copy.deepcopy(x).kept == [1]


def test_gradient_of_a_subclass_keeps_its_class_and_object():
    y = torch.empty(2)
    y.grad = Further(torch.ones(2))
    y.grad.name_of_mine = 3
    assert type(y.grad) is Further
    assert y.grad.name_of_mine == 3


def test_parameters_give_plain_tensors():
    p = torch.nn.Parameter(torch.ones(2))
    assert type(p + 1) is torch.Tensor
    assert type(p.exp()) is torch.Tensor
    assert type(p[0]) is torch.Tensor
    assert type(p + plain(1.0, 2.0)) is Plain


class Logged(torch.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_subclass_sees_functions_methods_and_operators():
    x = torch.ones(2).as_subclass(Logged)
    Logged.calls.clear()
    y = torch.add(x, 1).sub(2) * 3
    y = y[0]
    y += 1
    torch.stack([torch.ones(2), x])
    assert Logged.calls == ["add", "sub", "mul", "__getitem__", "add_", "stack"]
    assert type(y) is Logged


class Diagonal:
    """A diagonal matrix that is no tensor."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.mean:
            return args[0].value / args[0].n
        if func is scaled:
            return Diagonal(args[0].n, args[0].value * args[1])
        return NotImplemented


def scaled(x, by):
    """A function of a user's, which may be answered for."""
    if overrides.has_torch_function((x,)):
        return overrides.handle_torch_function(scaled, (x,), x, by)
    return x * by


def test_objects_that_are_no_tensors_answer():
    d = Diagonal(5, 2)
    assert torch.mean(d) == 0.4
    assert scaled(d, 3).value == 6
    assert scaled(torch.ones(1), 3).tolist() == [3]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'"):
        torch.add(d, torch.ones(5))
    assert overrides.is_tensor_like(d)
    assert not overrides.is_tensor_like(5)
    assert overrides.has_torch_function_variadic(1, d)
    assert not overrides.has_torch_function_unary(torch.ones(1))


def test_nobody_is_asked_before_a_class_answers():
    code = """
import pytensorlib as torch
from pytensorlib import _C
class Off(torch.Tensor):
    __torch_function__ = _C._disabled_torch_function_impl
x = torch.ones(2).as_subclass(Off)
assert type(x + 1) is torch.Tensor
assert type(x.exp()) is torch.Tensor
"""
    child.run(code)


def test_operand_or_index_that_stands_for_a_tensor_is_asked_at_the_first_call_of_a_process():
    code = """
import torch
class Like:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [type(a).__name__ for a in args]
t, m = torch.ones(2), Like()
print((t + m)[0], (t @ m)[0], (t == m)[0], (t != m)[0], (t < m)[0], (t // m)[0], (t & m)[0])
print((t ** m)[1], t[m][0], t[0, m][1], (m == t)[1])
t[m] = 1
t[0] = m
print(t.tolist())
"""
    named, rest, kept = child.run_as_torch(code).splitlines()
    # PyTorch 2.13 prints the same; it tells `==` by the name eq.
    assert named.replace("__eq__", "eq") == "add matmul eq ne lt __floordiv__ __and__"
    assert rest == ("['Tensor', 'Like'] __getitem__ ['Tensor', 'tuple'] ['Tensor', 'Like']")
    assert kept == "[1.0, 1.0]"


def test_method_that_a_program_puts_on_tensors_asks_nobody():
    code = """
import pytensorlib as torch
told = []
def kept(self): return self.note
torch.Tensor.kept, torch.Tensor.kept_property = kept, property(kept)
class Noted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        told.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})
x = torch.ones(2).as_subclass(Noted)
x.note = 3
assert (x.kept(), x.kept_property, told) == (3, 3, []), told
assert type(x.norm()) is Noted and told == ["norm"], told
"""
    child.run(code)


class Named:
    """A mode that keeps the names of functions."""

    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_modes_are_asked_for_every_function_the_last_one_first():
    outer, inner = Named(), Named()
    x = torch.ones(2)
    torch._C._push_torch_function_mode(outer)
    try:
        y = (x + 1).sum()
        torch._C._push_torch_function_mode(inner)
        try:
            assert torch._C._torch_function_modes() == [outer, inner]
            torch.zeros(2).exp_()
            with pytest.raises(RuntimeError):
                x @ torch.ones(3)
            assert torch._C._torch_function_modes() == [outer, inner]
        finally:
            assert torch._C._pop_torch_function_mode() is inner
    finally:
        assert torch._C._pop_torch_function_mode() is outer
    assert y.item() == 4.0
    assert inner.names[:2] == ["zeros", "exp_"] and "matmul" in inner.names
    assert outer.names[:2] == ["add", "sum"] and outer.names[2:] == inner.names
    before = len(outer.names)
    x.exp()
    assert len(outer.names) == before
    with pytest.raises(RuntimeError, match="no mode"):
        torch._C._pop_torch_function_mode()


# The methods by which PyTorch tells of operators.
OPERATORS = {
    f"__{name}__": told
    for told, names in {
        "abs": "abs",
        "neg": "neg",
        "positive": "pos",
        "add": "add radd",
        "sub": "sub",
        "mul": "mul rmul",
        "div": "truediv",
        "remainder": "mod",
        "pow": "pow",
        "pow_": "ipow",
        "matmul": "matmul",
        "bitwise_and": "rand",
        "bitwise_or": "ror",
        "bitwise_xor": "rxor",
        "lt": "lt",
        "le": "le",
        "ne": "ne",
        "gt": "gt",
        "ge": "ge",
        "add_": "iadd",
        "sub_": "isub",
        "mul_": "imul",
        "div_": "itruediv",
        "floor_divide_": "ifloordiv",
        "remainder_": "imod",
    }.items()
    for name in names.split()
}


# What calls these has no tensor on the other side, but for products of matrices.
REFLECTED = "and div floordiv lshift mod or pow rshift sub truediv xor"
REFLECTED = {f"__r{name}__" for name in REFLECTED.split()}
# Other names of one method or attribute.
OPERATORS |= {"nelement": "numel", "ndimension": "dim", "__rmatmul__": "matmul"}
OPERATORS["__rtruediv__"] = "__rdiv__"


def required(stand_in):
    """Return how many arguments a stand-in must get; None where it does not say."""
    given = inspect.signature(stand_in).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in given) and len(given) == 2:
        return None
    return sum(
        1 + (p.kind is p.VAR_POSITIONAL)
        for p in given
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.KEYWORD_ONLY)
    )


def test_every_overridable_function_tells_itself_before_all_others():
    told = []

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append(func)
            return -1

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append(func)
            return -1

    wrong = []
    for function, stand_in in overrides.get_testing_overrides().items():
        member = overrides.is_tensor_method_or_property(function)
        for count in (1, 2, 3) if required(stand_in) is None else (required(stand_in),):
            told.clear()
            args = [torch.ones(1).as_subclass(Sub) if member else Like() for _ in range(count)]
            if function.__name__ in REFLECTED:
                args[1:] = [2]
            with contextlib.suppress(Exception):
                function(*args)
            if told:
                break
        if function == torch.Tensor._grad.__get__:
            function = torch.Tensor.grad.__get__
        told_as = OPERATORS.get(function.__name__)
        expected = function if told_as is None else getattr(torch.Tensor, told_as)
        if not told or told[0] != expected:
            wrong.append((overrides.resolve_name(function), told[:1]))
    assert not wrong


def test_names_and_stand_ins_of_overridable_functions():
    found = torch.overrides.get_overridable_functions()
    assert len(found[torch]) > 450
    assert len(found[torch.Tensor]) > 400
    assert torch.Tensor.__add__ in found[torch.Tensor]
    resolve = torch.overrides.resolve_name
    assert resolve(torch.nn.functional.linear) == "torch.nn.functional.linear"
    assert resolve(torch.linalg.svd) == "torch.linalg.svd"
    assert resolve(torch.Tensor.T.__get__) == "torch.Tensor.T.__get__"
    assert resolve(print) is None
    ignored = torch.overrides.get_ignored_functions()
    assert {torch.zeros, torch.rand, torch.tensor} <= ignored
    assert not ignored & set().union(*found.values())
    stand_ins = torch.overrides.get_testing_overrides()
    assert stand_ins[torch.add](1, other=2) == -1
    with pytest.raises(TypeError):
        stand_ins[torch.add]()
    of_tensors = torch.overrides.is_tensor_method_or_property
    assert of_tensors(torch.Tensor.relu)
    assert of_tensors(torch.Tensor.T.__get__)
    assert not of_tensors(torch.relu)


class Answers(overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return -1


class Declines(overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return NotImplemented


class Records(overrides.TorchFunctionMode):
    """Keeps what it is told."""

    def __init__(self):
        self.told = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.told.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))


def test_modes_answer_for_factories_attributes_and_functions_of_programs():
    x = torch.ones(2)

    def own(a):
        if overrides.has_torch_function((a,)):
            return overrides.handle_torch_function(own, (a,), a)
        return a

    with Answers():
        assert torch.tensor([1]) == torch.as_tensor([1]) == torch.asarray([1]) == -1
        assert torch.randn(3) == torch.sparse_coo_tensor(1, 1, 1) == torch.split(None, [2]) == -1
        assert x.shape == x.dim() == x.item() == x.T == x.grad == -1
        assert own(1) == own(x) == -1
        assert overrides.has_torch_function_unary(1)
    assert own(1) == 1


def test_modes_are_told_of_the_public_function_with_its_arguments():
    x = torch.ones(2, 3)
    f = torch.nn.functional
    with Records() as mode:
        f.relu(x)
        f.linear(x, x)
        torch.unique(x)
        x.requires_grad = False
        x.sum(dim=0)
        torch.nn.init.uniform_(x)
    plain = (torch.Tensor,)
    assert mode.told == [
        (f.relu, plain, (x,), {"inplace": False}),
        (f.linear, (), (x, x), None),
        (torch.unique, (), (x,), None),
        (torch.Tensor.requires_grad.__set__, plain, (x, False), None),
        (torch.Tensor.sum, (), (x,), {"dim": 0}),
        (
            torch.nn.init.uniform_,
            plain,
            (),
            {"tensor": x, "a": 0.0, "b": 1.0, "generator": None},
        ),
    ]


def test_modes_that_decline_name_themselves_and_the_classes():
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(1).as_subclass(Refusing)
    with Declines():
        with pytest.raises(TypeError, match=r"(?s)'torch.max'; all .*mode object.*Refusing"):
            torch.max(x, 0)
        with pytest.raises(TypeError, match=r"mse_loss' on types .*Refusing.* nor in mode"):
            torch.nn.functional.mse_loss(x, x)
    with pytest.raises(TypeError, match="Tensor.shape.__get__'; all __torch_function__ handlers"):
        x.shape  # noqa: B018
    with pytest.raises(TypeError, match="unsupported operand"):
        x + 1


def test_modes_may_turn_themselves_on_again():
    told = []

    class Sub(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told.append(func)
            if func is torch.sub:
                with self:
                    return torch.add(*args, alpha=-1)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Sub():
        torch.sub(x, x)
    assert told == [torch.sub, torch.add]


def test_disabling_classes_leaves_modes_on():
    class Raises(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ValueError("asked")

    x = torch.ones(2).as_subclass(Raises)
    with Records() as mode:
        with torch._C.DisableTorchFunctionSubclass():
            torch.sum(x)
            with torch._C._EnableTorchFunction(), pytest.raises(ValueError, match="asked"):
                torch.sum(x)
        with torch._C.DisableTorchFunction():
            assert torch._C._is_torch_function_all_disabled()
            torch.sum(x)
    assert len(mode.told) == 2
    assert torch._C._is_torch_function_enabled()


def test_mode_with_a_method_of_the_class_raises():
    class OfClass(overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    x = torch.ones(2)
    with OfClass(), pytest.raises(RuntimeError, match="classmethod is not supported"):
        x + x


def test_class_with_a_method_of_objects_warns():
    class Old:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 5

    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert torch.abs(Old()) == 5
    with pytest.warns(DeprecationWarning, match="as a plain method is deprecated"):
        assert torch.nn.functional.relu(Old()) == 5


def test_functions_keep_their_signatures_and_sources_when_they_ask():
    f = torch.nn.functional.cross_entropy
    assert list(inspect.signature(f).parameters)[:3] == ["input", "target", "weight"]
    assert inspect.isfunction(f)
    assert "def cross_entropy" in inspect.getsource(f)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'target'"):
        f(torch.ones(2))


def test_objects_that_are_no_tensors_pass_through_layers():
    class Wrapper:
        def __init__(self, data):
            self.data_of_mine = data

        def __getattr__(self, name):
            value = getattr(self.data_of_mine, name)
            return (lambda *a, **k: wrap(value(*a, **k))) if callable(value) else value

        def __getitem__(self, key):
            return wrap(self.data_of_mine[key])

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            kwargs = {k: unwrap(v) for k, v in (kwargs or {}).items()}
            return wrap(func(*unwrap(tuple(args)), **kwargs))

    def unwrap(value):
        if type(value) in (tuple, list):
            return type(value)(map(unwrap, value))
        return value.data_of_mine if isinstance(value, Wrapper) else value

    def wrap(value):
        if type(value) in (tuple, list):
            return type(value)(map(wrap, value))
        return Wrapper(value) if isinstance(value, torch.Tensor) else value

    x = torch.randn(1, 5, 10)
    for layer in (torch.nn.LSTM(10, 3), torch.nn.Linear(10, 3), torch.nn.BatchNorm1d(5)):
        layer.eval()
        found, expected = layer(Wrapper(x)), layer(x)
        if isinstance(expected, tuple):
            found, expected = found[0], expected[0]
        assert torch.equal(found.data_of_mine, expected)


def test_redispatch_skips_one_level_of_asking():
    """The two examples are PyTorch's; so is what they log."""
    log = []

    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    class LoggingMode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            with self:
                return overrides.redispatch_function(func, types, args, kwargs)

    def product(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(product, (a, b), a, b)
        return a * b + 1

    a, b = torch.tensor([3.0]), torch.tensor([4.0])
    y = product(a.as_subclass(Logging), b.as_subclass(Logging))
    assert type(y) is torch.Tensor
    assert log == ["product", "mul"]
    log.clear()
    with LoggingMode():
        y = product(a, b)
    assert y.tolist() == [13.0]
    assert log == ["product", "mul", "add"]
    log.clear()
    torch.nn.functional.relu(a.as_subclass(Logging))
    assert log == ["relu", "relu"]


class Asked(torch.Tensor):
    """Notes the functions that it is asked for."""

    calls: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_operators_ask_for_pytorchs_methods() -> None:
    x = torch.tensor([1.0, 2.0]).as_subclass(Asked)
    Asked.calls.clear()
    x + 1, 1 + x, x - 1, x * 2, 2 * x, x / 2, x % 2, x @ x, -x, +x, abs(x)
    x < 1, x <= 1, x > 1, x >= 1, x != 1
    y = x
    y += 1
    y -= 1
    y *= 2
    y /= 2
    names = "add add sub mul mul div remainder matmul neg positive abs lt le gt ge ne".split()
    names += "add_ sub_ mul_ div_".split()
    assert Asked.calls == [getattr(torch.Tensor, name) for name in names]


class Other:
    def __radd__(self, x: Any) -> str:
        return "the other one's"


def test_operand_that_no_tensor_takes_is_asked_after_the_class() -> None:
    x = torch.ones(1).as_subclass(Asked)
    assert x + Other() == "the other one's"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"


def test_what_is_not_here_is_not_listed_after_someone_looked_at_it() -> None:
    code = (
        "import pytensorlib as torch\n"
        "from pytensorlib.overrides import get_testing_overrides\n"
        "absent = torch.parse_ir\n"
        "assert absent not in get_testing_overrides()\n"
    )
    child.run(code)
