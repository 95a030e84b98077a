"""Writes the reference: a page for each module, with an entry for each public name in it.

Names are found by importing the package, texts are its docstrings. Operators of ``torch`` are
grouped as their sections are (rust/core/src/ops/docs), methods of tensors have a page of their own.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpydoc_text as numpydoc

import pytensorlib
from pytensorlib import _absent

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import public_names  # noqa: E402

SECTIONS = ROOT / "rust/core/src/ops/docs"
KINDS = (pytensorlib.dtype, pytensorlib.layout, pytensorlib.memory_format)
HIDDEN = ("pytensorlib.examples", "pytensorlib.__main__")
# What modules are for, where their docstring does not say it better.
TITLES = {
    "index": "Gathering, scattering and masks",
    "linalg": "Linear algebra",
    "nn": "Layers as functions",
    "optim": "Steps of optimizers",
    "pointwise": "Elementwise",
    "random": "Random numbers",
    "reduce": "Reductions",
    "shape": "Shapes and views",
    "sort": "Order",
    "sparse": "Sparse tensors",
}


class Entry(NamedTuple):
    """A public name: where it is, what it is."""

    full: str  # from ``torch`` on
    value: Any


def public(name: str) -> str:
    """Return a name as users write it."""
    return re.sub(r"^pytensorlib\b", "torch", name)


def modules() -> list[str]:
    """Return the public modules of the package."""
    found = ["pytensorlib"]
    for module in pkgutil.walk_packages(pytensorlib.__path__, "pytensorlib."):
        parts = module.name.split(".")
        if any(part.startswith("_") for part in parts) or module.name.startswith(HIDDEN):
            continue
        found.append(module.name)
    return sorted(found)


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module: those it lists, else those it defines."""
    listed = getattr(module, "__all__", None)
    names = list(listed) if listed is not None else []
    if listed is None or module is pytensorlib:
        own = {module.__name__, public(module.__name__)}
        for name, value in vars(module).items():
            home = getattr(value, "__module__", None) or ""
            if module is pytensorlib:
                mine = home.partition(".")[0] in {"pytensorlib", "torch"} or isinstance(
                    value, KINDS
                )
                mine = mine and (inspect.getdoc(value) is not None or isinstance(value, KINDS))
            else:
                mine = home in own
            if mine:
                names.append(name)
    return sorted(
        {
            n
            for n in names
            if not n.startswith("_")
            and hasattr(module, n)
            and not inspect.ismodule(getattr(module, n))
        }
    )


@cache
def entries() -> dict[str, Entry]:
    """Return every public name of every module, and the methods of tensors."""
    found: dict[str, Entry] = {}
    for name in modules():
        module = importlib.import_module(name)
        for key in names_of(module):
            full = f"{public(name)}.{key}"
            found[full] = Entry(full, getattr(module, key))
    # Names that PyTorch has for public and a module here does not list.
    for module, names in public_names.read(public_names.NAMES).items():
        owner = public_names.owner(module)
        inner = module.endswith(public_names.INTERNAL) or "._" in module
        if owner is None or inner or module == "torch.Tensor":
            continue
        for key in names:
            value = getattr(owner, key, None)
            if hasattr(owner, key) and not inspect.ismodule(value):
                found.setdefault(f"{module}.{key}", Entry(f"{module}.{key}", value))
    for key in sorted(dir(pytensorlib.Tensor)):
        value = inspect.getattr_static(pytensorlib.Tensor, key)
        if not key.startswith("_") and not isinstance(value, _absent.Missing):
            found[f"torch.Tensor.{key}"] = Entry(f"torch.Tensor.{key}", value)
    return found


@cache
def firsts() -> dict[int, str]:
    """Return for each documented object the name that has its text: the shortest one."""
    found: dict[int, str] = {}
    order = sorted(entries(), key=lambda n: (n.startswith("torch.Tensor."), n.count("."), len(n)))
    for full in order:
        value = entries()[full].value
        if inspect.isclass(value) or callable(value):
            home = getattr(value, "__module__", "") or ""
            own = f"{public(home)}.{getattr(value, '__qualname__', '')}"
            kept = found.setdefault(id(value), full)
            if own in entries() and entries()[own].value is value and kept != own:
                found[id(value)] = own
    return found


def resolver(place: str) -> numpydoc.Resolve:
    """Return what finds a name that stands in backticks on the page of a module or class."""
    known = entries()

    def resolve(code: str) -> str | None:
        name = code.removesuffix("()").replace("pytensorlib.", "torch.")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", name) or name in {"input", "other", "out", "dim"}:
            return None
        tries = [name, f"{place}.{name}", f"torch.{name}", f"torch.nn.{name}"]
        tries.append(f"torch.Tensor.{name}")
        # One short word is more often a parameter than a function.
        if "." not in name and len(name) < 4:
            tries = tries[:2]
        return next((t for t in tries if t in known), None)

    return resolve


def signature(value: Any, bound: bool = False) -> str:
    """Return the arguments as Python shows them; nothing where they are not known."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)" if callable(value) else ""
    parameters = list(found.parameters.values())
    if bound and parameters and parameters[0].name in {"self", "cls"}:
        parameters = parameters[1:]
    plain = [
        p.replace(annotation=p.empty, default=p.default if p.default is p.empty else _Shown(p))
        for p in parameters
    ]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


class _Shown:
    """A default value as it is written: no addresses, no long texts."""

    def __init__(self, parameter: inspect.Parameter) -> None:
        value = parameter.default
        text = repr(value)
        if isinstance(value, type) or inspect.isroutine(value):
            text = getattr(value, "__name__", text)
        if " at 0x" in text or len(text) > 40 or text.startswith("<"):
            text = "..."
        self.text = text.replace("pytensorlib.", "torch.")

    def __repr__(self) -> str:
        return self.text


def foreign(value: Any) -> str:
    """Return the package that a function or class is of, where that is another one."""
    plain = inspect.isclass(value) or inspect.isroutine(value)
    home = (getattr(value, "__module__", None) or "" if plain else "").partition(".")[0]
    return "" if home in {"", "builtins", "pytensorlib", "torch"} else home


def text_of(value: Any) -> str:
    """Return a docstring of its own."""
    if package := foreign(value):
        return f"Of the package ``{package}``."
    bare = isinstance(value, KINDS) or type(value).__module__ == "typing"
    doc = "" if bare else inspect.getdoc(value)
    if inspect.isclass(value) and not vars(value).get("__doc__"):
        doc = vars(value).get("__init__").__doc__ if "__init__" in vars(value) else doc
        doc = inspect.cleandoc(doc) if doc else ""
    return doc or ""


def body(value: Any, place: str) -> str:
    """Return the text of an entry."""
    doc, resolve = text_of(value), resolver(place)
    head, _, rest = doc.partition("\n\n")
    forms = ""
    if re.match(r"^[\w.]+\(.*\)( -> |$)", head.split("\n")[0]) and not head.startswith(">>>"):
        forms = ".. code-block:: text\n   :class: forms\n\n" + numpydoc.indent(head) + "\n\n"
        doc = rest
    if not doc.strip() and not inspect.isclass(value) and not callable(value):
        kind = type(value).__name__
        return f"A value of type ``{kind}``." if not isinstance(value, property) else ""
    return forms + numpydoc.converted(doc, resolve)


def directive(entry: Entry, bound: bool = False) -> tuple[str, str]:
    """Return which directive of Sphinx describes a value, and its signature."""
    value = entry.value
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    kind = "method" if bound else "function"
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
    elif isinstance(value, property) or inspect.isdatadescriptor(value):
        return ("property" if bound else "attribute"), ""
    elif not callable(value):
        return ("attribute" if bound else "data"), ""
    return kind, signature(value, bound)


def members(kind: type) -> list[tuple[str, Any]]:
    """Return the public methods and properties that a class itself describes."""
    found: list[tuple[str, Any]] = []
    if foreign(kind):
        return found
    for name, value in vars(kind).items():
        inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        described = isinstance(inner, property) or inspect.isroutine(inner)
        if not name.startswith("_") and described and inspect.getdoc(inner):
            found.append((name, inner))
    return sorted(found, key=lambda item: item[0])


def described(entry: Entry) -> str:
    """Return one entry of a page."""
    place = entry.full.rpartition(".")[0]
    first = firsts().get(id(entry.value), entry.full)
    kind, shown = directive(entry, place == "torch.Tensor")
    lines = [f".. py:{kind}:: {entry.full}{shown}", ""]
    if first != entry.full and place != "torch.Tensor":
        same = f"The same as :py:obj:`{first}`."
        return "\n".join([*lines, numpydoc.indent(same), ""])
    lines.append(numpydoc.indent(body(entry.value, place)))
    if inspect.isclass(entry.value) and entry.value is not pytensorlib.Tensor:
        for name, value in members(entry.value):
            inner = Entry(f"{entry.full}.{name}", value)
            if inner.full in entries():
                continue
            what, arguments = directive(inner, True)
            text = f".. py:{what}:: {inner.full}{arguments}\n\n"
            text += numpydoc.indent(body(value, entry.full))
            lines += ["", numpydoc.indent(text)]
    return "\n".join([*lines, ""])


def method(entry: Entry) -> str:
    """Return an entry of the page of tensors: in short where a function has the same text."""
    name = entry.full.rpartition(".")[2]
    stem = name.removesuffix("_") if not name.endswith("__") else name
    twins = [f"torch.{stem}", f"torch.special.{stem}", f"torch.linalg.{stem}"]
    twin = next((t for t in twins if t in entries()), None)
    doc = text_of(entry.value)
    own = doc.partition("\n\n")[2]
    if twin is None or not own or ("Parameters\n----" not in own and "Returns\n----" not in own):
        return described(entry)
    kind, shown = directive(entry, True)
    how = "In place: the result is written to the tensor. " if name.endswith("_") else ""
    text = f"{how}See :py:obj:`{twin}`."
    return f".. py:{kind}:: {entry.full}{shown}\n\n{numpydoc.indent(text)}\n"


def contents(names: list[str]) -> str:
    """Return links to the entries of a page, on as few lines as they take."""
    if len(names) < 4:
        return ""
    links = (f":py:obj:`{name.rpartition('.')[2]} <{name}>`" for name in names)
    return ".. container:: names\n\n" + numpydoc.indent("\n".join(links), "   ") + "\n"


def heading(text: str, mark: str = "=") -> str:
    """Return a title."""
    return f"{text}\n{mark * len(text)}\n"


def families() -> dict[str, list[str]]:
    """Return the names of operators by the file that has their sections, in its order."""
    found = {}
    for path in sorted(SECTIONS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
        found[path.stem] = [n.strip() for head in heads for n in head.split(",")]
    return found


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    found, taken = {}, set()
    known = entries()
    for family, names in families().items():
        here = [f"torch.{n}" for n in names if f"torch.{n}" in known]
        here = [n for n in dict.fromkeys(here) if n.count(".") == 1 and n not in taken]
        taken |= set(here)
        if here:
            texts = [described(known[n]) for n in here]
            title = f"torch: {TITLES.get(family, family)}"
            found[f"torch-{family}"] = "\n".join([heading(title), contents(here), *texts])
    groups: dict[str, list[Entry]] = defaultdict(list)
    for full, entry in known.items():
        if full not in taken:
            groups[full.rpartition(".")[0]].append(entry)
    places = {public(name) for name in modules()} | {*groups} - {"torch.Tensor"}
    for place in sorted(places):
        module = importlib.import_module(re.sub(r"^torch\b", "pytensorlib", place))
        title = place if place != "torch" else "torch: everything else"
        about = numpydoc.converted(inspect.getdoc(module) or "", resolver(place))
        page = page_of(place)
        # Some functions have the name of the module that they are in.
        mark = "" if place in known else f".. py:module:: {place}\n\n.. py:currentmodule:: None\n"
        texts = [
            heading(title, "-" if page in found else "="),
            mark,
        ]
        texts += [about, ""]
        here = [entry for entry in groups[place] if entry.full != "torch.Tensor"]
        texts += [contents([entry.full for entry in here]), *map(described, here)]
        if page.endswith("-inside") and page not in found:
            found[page] = heading(f"{page.removesuffix('-inside')}: modules inside it")
            texts[0] = heading(title, "-")
        found[page] = found.get(page, "") + "\n\n" + "\n".join(texts)
    tensor = known.get("torch.Tensor")
    texts = [heading("torch.Tensor")]
    if tensor:
        texts.append(described(tensor))
    texts.append(contents([entry.full for entry in groups["torch.Tensor"]]))
    texts += [method(entry) for entry in groups["torch.Tensor"]]
    found["torch.Tensor"] = "\n".join(texts)
    return found


# Modules inside packages that have a page of their own: people look for them by name.
OWN_PAGE = {
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.optim.lr_scheduler",
    "torch.utils.data",
    "torch.utils.show",
    "torch.autograd.functional",
    "torch.autograd.graph",
}


def page_of(place: str) -> str:
    """Return the page of a module: small ones inside a package share one."""
    if place.count(".") < 2 or place in OWN_PAGE:
        return place
    return ".".join(place.split(".")[:2]) + "-inside"


def index(names: list[str]) -> str:
    """Return the page that lists the others."""
    operators = [n for n in names if n.startswith("torch-")]
    names = [n for n in names if n != "index"]
    packages = [n for n in names if n not in operators and n not in {"torch", "torch.Tensor"}]
    main = [n for n in packages if n.count(".") == 1]
    deeper = [n for n in packages if n not in main]
    text = [
        heading("All names"),
        "``torch`` stands for this library: ``import pytensorlib as torch``. Every public name is "
        "on one of these pages; the search field finds it by its name.\n",
    ]
    for title, group in (
        ("Tensors and operators", ["torch.Tensor", *operators, "torch"]),
        ("Packages and modules", main),
        ("Modules inside packages", deeper),
    ):
        text += [heading(title, "-"), ".. toctree::\n   :maxdepth: 1\n"]
        text += [f"   {name}" for name in group] + [""]
    return "\n".join(text)


def wrong_examples() -> dict[str, str]:
    """Run the examples of every text of the reference; return what went wrong, by name."""
    import snippets

    texts: dict[str, str] = {}
    for full, entry in entries().items():
        texts.setdefault(text_of(entry.value), full)
        if inspect.isclass(entry.value):
            for name, value in members(entry.value):
                texts.setdefault(text_of(value), f"{full}.{name}")
    found = {}
    for text, full in texts.items():
        if ">>>" in text and (wrong := snippets.run(text, full)):
            found[full] = wrong
    return found


def write(folder: Path) -> int:
    """Write the pages; files that do not change keep their time. Returns how many names."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    texts["index"] = index(list(texts))
    for name, text in texts.items():
        file = folder / f"{name}.rst"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    for file in folder.glob("*.rst"):
        if file.stem not in texts:
            file.unlink()
    return len(entries())
