"""What `help` says of every operator is complete, true to its signature, and its examples run."""

import doctest
import functools
import inspect
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import pytensorlib as torch

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = sorted((ROOT / "rust/core/src/ops/docs").glob("*.md"))
PLACES: dict[str, Any] = {
    "": torch,
    "linalg": torch.linalg,
    "special": torch.special,
    "fft": torch.fft,
    "nn.functional": torch.nn.functional,
    "Tensor": torch.Tensor,
}
BUILTIN = (type(torch.add), type(torch.Tensor.add))
# Parameters that need no description in a section: they mean the same everywhere.
COMMON = set("out dtype layout device pin_memory requires_grad memory_format".split())
COMMON |= {"generator", "size_average", "reduce", "_stacklevel"}
FACTORY = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def sections(path: Path) -> Iterator[tuple[list[str], str]]:
    """Yield the names in each heading of a family, and the text below it."""
    for chunk in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        head, _, body = chunk.partition("\n")
        yield [name.strip() for name in head.split(",")], body.strip()


@functools.cache
def all_sections() -> dict[str, str]:
    return {n: body for path in FAMILIES for names, body in sections(path) for n in names}


def public() -> Iterator[tuple[str, str, Any]]:
    """Yield each operator as its place, its name and its object."""
    for place, module in PLACES.items():
        for name, value in vars(module).items():
            # Some are functions of Python's around the operator.
            around = not place and name in torch.functional._OPERATORS
            operator = getattr(torch._C, name) if around else value
            if type(operator) in BUILTIN and not name.startswith("_"):
                yield place, name, operator


def section_of(place: str, name: str) -> str | None:
    found = all_sections()
    for n in (name, name.removesuffix("_")):
        for key in (f"{place}.{n}", n):
            if key in found:
                return found[key]
    return None


PUBLIC = list(public())


def parts(section: str) -> dict[str, str]:
    """Split a section at its underlined headings; what comes before is the lead."""
    found = re.split(r"^(\w[\w ]*)\n-{3,}\n", "\n" + section, flags=re.MULTILINE)
    return {"lead": found[0], **dict(zip(found[1::2], found[2::2], strict=True))}


def described(text: str) -> list[str]:
    """Return the names that a list of parameters describes."""
    heads = re.findall(r"^(\*{0,2}\w[^:\n]*?)(?: :.*)?$", text, flags=re.MULTILINE)
    return [name.strip(" *") for head in heads for name in head.split(",")]


def parameters(function: Any) -> set[str]:
    """Return the names that any form of a function takes."""
    names = set(inspect.signature(function).parameters)
    for line in function.__doc__.split("\n\n")[0].split("\n"):
        names |= set(re.findall(r"(?<=[(, *])(\w+)(?=:)", line))
    return {"from" if n == "from_" else n for n in names - {"self", "_"}}


def test_every_operator_has_a_section() -> None:
    assert not {n for p, n, _ in PUBLIC if not section_of(p, n)}


def test_sections_name_what_exists_and_once() -> None:
    names = [n for path in FAMILIES for heads, _ in sections(path) for n in heads]
    assert not {n for n in names if names.count(n) > 1}, "described twice"

    known = {n for _, n, _ in PUBLIC} | {f"{p}.{n}" for p, n, _ in PUBLIC} | set(vars(torch._C._nn))
    assert not [n for n in names if n not in known and n + "_" not in known]


@pytest.mark.parametrize("path", FAMILIES, ids=lambda p: p.stem)
def test_sections_are_complete(path: Path) -> None:
    order = ["lead", "Parameters", "Returns", "Raises", "References", "Examples"]
    wrong = []
    for names, body in sections(path):
        have = list(parts(body))
        listed = have == [part for part in order if part in have]
        if not listed or not {"Returns", "Examples"} <= set(have) or ">>>" not in body:
            wrong.append((names, have))
    assert not wrong
    long = [line for line in path.read_text(encoding="utf-8").split("\n") if len(line) > 100]
    assert not long


def test_parameters_are_those_of_the_signature() -> None:
    wrong = []
    forms: dict[int, tuple[set[str], set[str], set[str]]] = {}
    for place, name, function in PUBLIC:
        section = section_of(place, name) or ""
        takes = names = parameters(function)
        listed = set(described(parts(section).get("Parameters", "")))
        if name.endswith("_") and not section_of(place, name + "_"):
            # The section is that of the function it is the in-place form of.
            names = set()
        if lacking := names - listed - COMMON - {"input"}:
            wrong.append(f"{place or 'torch'}.{name}: {', '.join(sorted(lacking))} not described")
        own = forms.setdefault(id(section), (set(), listed, set()))
        own[0].update(takes)
        # Sections also say what the function of `nn.functional` around an operator adds.
        if isinstance(around := vars(torch.nn.functional).get(name), FunctionType):
            own[0].update(inspect.signature(around).parameters)
        own[2].add(name)
    for known, listed, places in forms.values():
        if unknown := listed - known - COMMON - {"input"}:
            wrong.append(f"{', '.join(sorted(places))}: no parameter {', '.join(sorted(unknown))}")
    assert not wrong, "\n".join(wrong)


def run(text: str, name: str, names: dict[str, Any]) -> str:
    """Run the examples in a text and return what went wrong."""
    examples = doctest.DocTestParser().get_examples(text)
    for example in examples:
        # An error may be shown by its last line alone.
        if re.match(r"\w+Error: ", example.want):
            example.exc_msg = example.want
    report: list[str] = []
    test = doctest.DocTest(examples, names, name, None, None, text)
    doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("path", FAMILIES, ids=lambda p: p.stem)
def test_examples_give_what_they_say(path: Path) -> None:
    wrong = "".join(run(body, names[0], {}) for names, body in sections(path))
    assert not wrong, wrong


def test_examples_of_what_is_no_operator_give_what_they_say() -> None:
    # Functions, classes and methods of the extension that no signature of ours describes.
    homes = {"": torch._C, **{n: v for n, v in vars(torch._C).items() if isinstance(v, type)}}
    wrong = [
        run(inspect.getdoc(value) or "", f"{home}.{name}", {})
        for home, owner in homes.items()
        for name, value in vars(owner).items()
        if type(value) not in BUILTIN and not isinstance(value, FunctionType | type)
    ]
    assert not any(wrong), "".join(wrong)


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_examples_of_the_guides_give_what_they_say(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    wrong = run("\n".join(code), name, {})
    assert not wrong, wrong


def test_help_shows_signature_and_section_of_every_operator() -> None:
    wrong = []
    for place, name, function in PUBLIC:
        text = inspect.getdoc(function) or ""
        try:
            inspect.signature(function)
        except ValueError as e:
            wrong.append(f"{place}.{name}: {e}")
        if re.search(r"\w\[\d\]|\?|\bself\b|ScalarType|Scalar\b", text.split("\n\n")[0]):
            wrong.append(f"{place}.{name}: {text.split(chr(10))[0]}")
        lead = parts(section_of(place, name) or "")["lead"].strip()
        if lead not in text or not text.strip():
            wrong.append(f"{place}.{name}: not the text of its section")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("add", "(input, other, *, alpha=1, out=None)"),
        ("sum", "(input, dim=None, keepdim=False, *, dtype=None, out=None)"),
        ("Tensor.sum", "(self, /, dim=None, keepdim=False, *, dtype=None)"),
        ("Tensor.add_", "(self, /, other, *, alpha=1)"),
        ("Tensor.view", "(self, /, *size)"),
        ("Tensor.permute", "(self, /, *dims)"),
        ("permute", "(input, dims)"),
        ("max", "(input, dim=None, keepdim=False, *, out=None)"),
        ("arange", f"(start, end=None, step=1, *, {FACTORY}, out=None)"),
        ("randint", f"(low, high, size=None, *, generator=None, {FACTORY}, out=None)"),
        ("std", "(input, dim=None, unbiased=True, keepdim=False, *, correction=None, out=None)"),
        ("where", "(condition, input=None, other=None, *, out=None)"),
        (
            "nn.functional.conv2d",
            "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
        ),
        ("linalg.qr", "(A, mode='reduced', *, out=None)"),
        ("Tensor.uniform_", "(self, from_=0.0, /, to=1.0, *, generator=None)"),
        ("zeros", f"(*size, {FACTORY}, out=None)"),
    ],
)
def test_signature_is_pythons(name: str, signature: str) -> None:
    function = functools.reduce(getattr, name.split("."), torch)
    assert str(inspect.signature(function)) == signature


def test_function_can_be_wrapped_and_bound() -> None:
    @functools.wraps(torch.add)
    def add(*args: Any, **kwargs: Any) -> Any:
        return torch.add(*args, **kwargs)

    assert add.__doc__ == torch.add.__doc__
    assert inspect.signature(add) == inspect.signature(torch.add)
    assert str(inspect.signature(torch.ones(2).add_)) == "(other, *, alpha=1)"
    bound = inspect.signature(torch.add).bind(1, 2, alpha=3)
    assert torch.add(*bound.args, **bound.kwargs) == 7


def test_help_of_an_overloaded_operator() -> None:
    text = pydoc.plain(pydoc.render_doc(torch.Tensor.sum))
    assert "Tensor.sum(*, dtype: dtype | None = None) -> Tensor" in text
    assert "dim: int | Sequence[int] | None" in text
    assert "Returns\n    -------" in text
    assert "`add_` does the same in place" in torch.add.__doc__
    assert "out : Tensor, optional" in torch.add.__doc__
    assert "out : tuple of Tensor, optional" in torch.sort.__doc__
    # A summary speaks of the first parameter by its public name.
    assert "\n\ninput + alpha * other.\n\n" in torch.add.__doc__
    # Also where a section has nothing to add to the summary.
    assert "`mish_` does the same in place: it writes the result to `input`.\n\nParameters" in (
        torch._C._nn.mish.__doc__
    )
    assert "Writes the result to `input`" in torch.Tensor.add_.__doc__


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x.sum("a"), "sum(dim: int | Sequence[int] | None, keepdim: bool = False, *, "),
        (lambda x: x.sum("a"), "got (str), but expected"),
        (lambda x: torch.sum(x, foo=1), "sum(input: Tensor, *, dtype: dtype | None = None, out: "),
        (
            lambda x: x.new_empty((2.5,)),
            "argument 'size' (position 1) must be tuple of ints, but found element of type float "
            "at pos 0",
        ),
        (
            lambda x: torch.zeros((2, "a")),
            "argument 'size' (position 1) must be tuple of ints, but found element of type str "
            "at pos 1",
        ),
        (lambda x: x.permute(0.5), "'dims' (position 1) must be tuple of ints, not float"),
        (lambda x: torch.zeros(2, dtype=3), "argument 'dtype' must be torch.dtype, not int"),
        (lambda x: torch.add(x, "a"), "'other' (position 2) must be Tensor, not str"),
        (lambda x: x.relu(1), "relu() takes 0 positional arguments but 1 was given"),
        (lambda x: torch.relu(x, 1), "relu() takes 1 positional argument but 2 were given"),
        (lambda x: x.cumsum(0, dim=0), "cumsum() got multiple values for argument 'dim'"),
        (lambda x: torch.add(x, 1, out=3), "add(): argument 'out' must be Tensor, not int"),
        (lambda x: torch.sort(x, out=3), "'out' must be tuple of Tensors, not int"),
        (lambda x: x.add("a"), "'other' (position 1) must be Tensor, not str"),
    ],
)
def test_errors_show_pythons_types(call: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(torch.ones(2))
    assert text in str(caught.value)
    assert not re.search(r"int\[\d?\]|ScalarType|\w\?", str(caught.value))
