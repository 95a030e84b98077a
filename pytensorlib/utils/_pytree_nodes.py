"""The classes of containers that trees are made of."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "Context",
    "DumpableContext",
    "GetAttrKey",
    "KeyPath",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SERIALIZED_TYPE_TO_PYTHON_TYPE",
    "SUPPORTED_NODES",
    "SUPPORTED_SERIALIZED_TYPES",
    "SequenceKey",
    "SerializeNodeDef",
    "T",
    "VERSION",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
]


PyTree = Any


Context = Any


DumpableContext = Any


KeyPath = tuple[Any, ...]


T = TypeVar("T")


VERSION = 1


class SequenceKey(NamedTuple):
    """The place of a child in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the child."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """The place of a child in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the child."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The place of a child in an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the child."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How containers of a class are taken apart and put together."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


class SerializeNodeDef(NamedTuple):
    """The serialised name of a container class, and how its context is written."""

    typ: type
    serialized_type_name: str | None
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


SUPPORTED_SERIALIZED_TYPES: dict[Any, SerializeNodeDef] = {}


SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
) -> None:
    """Make a class of containers known.

    Parameters
    ----------
    cls : type
        Instances of this class itself are meant, not of subclasses.
    flatten_fn : callable
        Returns the children and a context.
    unflatten_fn : callable
        Makes a container of children and a context.
    serialized_type_name : str, optional
        What the class is called in text.
    to_dumpable_context, from_dumpable_context : callable, optional
        Make a context fit for JSON, and back.
    flatten_with_keys_fn : callable, optional
        As `flatten_fn`, with pairs of key and child.

    Raises
    ------
    ValueError
        The class is known already, or only one of the last two functions is given.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    >>> pytree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = SerializeNodeDef(
        cls, serialized_type_name, to_dumpable_context, from_dumpable_context
    )
    if serialized_type_name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _register_pytree_node(cls: type, flatten_fn: Any, unflatten_fn: Any, **kwargs: Any) -> None:
    """Make a class known, or known otherwise."""
    SUPPORTED_NODES.pop(cls, None)
    for name in ("to_str_fn", "maybe_from_str_fn"):
        kwargs.pop(name, None)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Forget a class."""
    del SUPPORTED_NODES[cls]
    known = SUPPORTED_SERIALIZED_TYPES.pop(cls)
    if known.serialized_type_name is not None:
        del SERIALIZED_TYPE_TO_PYTHON_TYPE[known.serialized_type_name]


def register_constant(cls: type) -> None:
    """Make instances of a class part of the structure: they have no leaves.

    Parameters
    ----------
    cls : type
        Its instances can be compared and hashed.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> class Mode(str): ...
    >>> pytree.register_constant(Mode)
    >>> pytree.tree_leaves([Mode("sum"), 1])
    [1]
    """
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a data class known: its fields are its children.

    Parameters
    ----------
    cls : type
        A data class.
    field_names : list of str, optional
        The fields; by default all that ``__init__`` takes.
    drop_field_names : list of str, optional
        Fields that are left out.
    serialized_type_name : str, optional
        What the class is called in text.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from pytensorlib.utils import _pytree as pytree
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> pytree.register_dataclass(Point)
    >>> pytree.tree_map(lambda v: -v, Point(1, 2))
    Point(x=-1, y=-2)
    """
    import dataclasses

    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init]
    names = [n for n in names if n not in (drop_field_names or [])]

    def with_keys(obj: Any) -> Any:
        # A field that is None is part of the structure.
        given = [n for n in names if getattr(obj, n) is not None]
        empty = [n for n in names if getattr(obj, n) is None]
        return [(GetAttrKey(n), getattr(obj, n)) for n in given], [given, empty]

    def without_keys(obj: Any) -> Any:
        pairs, context = with_keys(obj)
        return [value for _, value in pairs], context

    def build(values: Iterable[Any], context: Any) -> Any:
        given, empty = context
        return cls(**dict(zip(given, values, strict=True)), **dict.fromkeys(empty))

    register_pytree_node(
        cls,
        without_keys,
        build,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object, or a class, is a named tuple.

    Parameters
    ----------
    obj : object or type
        Anything.

    Returns
    -------
    bool
        Whether it has named fields.

    Examples
    --------
    >>> from collections import namedtuple
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.is_namedtuple(namedtuple("P", "x y")(1, 2)), pytree.is_namedtuple((1, 2))
    (True, False)
    """
    cls = obj if isinstance(obj, type) else type(obj)
    fields = getattr(cls, "_fields", None)
    return (
        issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(isinstance(name, str) for name in fields)
    )


def is_namedtuple_instance(obj: Any) -> bool:
    """Return whether an object is a named tuple."""
    return not isinstance(obj, type) and is_namedtuple(obj)


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class is one of named tuples."""
    return isinstance(cls, type) and is_namedtuple(cls)


def is_structseq(obj: Any) -> bool:
    """Return whether an object, or a class, is a tuple with names that C defines.

    Parameters
    ----------
    obj : object or type
        Anything.

    Returns
    -------
    bool
        True for example of ``time.struct_time``.

    Examples
    --------
    >>> import time
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.is_structseq(time.gmtime(0)), pytree.is_structseq((1, 2))
    (True, False)
    """
    cls = obj if isinstance(obj, type) else type(obj)
    names = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return cls.__bases__ == (tuple,) and all(isinstance(getattr(cls, n, None), int) for n in names)


def _keyed(flatten: Any, key: Any) -> Any:
    def with_keys(container: Any) -> Any:
        children, context = flatten(container)
        keys = context if key is MappingKey else range(len(children))
        return [(key(k), child) for k, child in zip(keys, children, strict=True)], context

    return with_keys


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


_dict_flatten_with_keys = _keyed(_dict_flatten, MappingKey)


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), type(d)


def _namedtuple_with_keys(d: Any) -> Any:
    return [(GetAttrKey(n), v) for n, v in zip(d._fields, d, strict=True)], type(d)


def _default_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), [d.default_factory, list(d.keys())]


def _default_with_keys(d: Any) -> Any:
    return [(MappingKey(k), v) for k, v in d.items()], [d.default_factory, list(d.keys())]


def _told_default(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {
        "default_factory_module": factory and factory.__module__,
        "default_factory_name": factory and factory.__qualname__,
        "dict_context": keys,
    }


def _plain(cls: type, flatten: Any, unflatten: Any, with_keys: Any) -> None:
    name = f"{cls.__module__}.{cls.__qualname__}"
    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=name, flatten_with_keys_fn=with_keys
    )


_list_flatten_with_keys = _keyed(_list_flatten, SequenceKey)


_plain(tuple, _list_flatten, lambda values, _: tuple(values), _list_flatten_with_keys)


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


_plain(list, _list_flatten, _list_unflatten, _list_flatten_with_keys)


_plain(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys)


_plain(
    OrderedDict,
    _dict_flatten,
    lambda values, keys: OrderedDict(zip(keys, values, strict=True)),
    _dict_flatten_with_keys,
)


_plain(
    deque,
    lambda d: (list(d), d.maxlen),
    lambda values, length: deque(values, maxlen=length),
    _keyed(lambda d: (list(d), d.maxlen), SequenceKey),
)


register_pytree_node(
    defaultdict,
    _default_flatten,
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    serialized_type_name="collections.defaultdict",
    to_dumpable_context=_told_default,
    from_dumpable_context=lambda told: [
        told["default_factory_name"]
        and _named(f"{told['default_factory_module']}.{told['default_factory_name']}"),
        told["dict_context"],
    ],
    flatten_with_keys_fn=_default_with_keys,
)


register_pytree_node(
    namedtuple,  # type: ignore[arg-type]  # stands for all of its classes, as in PyTorch
    _namedtuple_flatten,
    # What operators return takes its items as one.
    lambda values, cls: cls(values) if hasattr(cls, "n_fields") else cls(*values),
    serialized_type_name="collections.namedtuple",
    to_dumpable_context=lambda cls: f"{cls.__module__}.{cls.__qualname__}",
    from_dumpable_context=lambda name: _named(name),  # noqa: PLW0108  (defined below)
    flatten_with_keys_fn=_namedtuple_with_keys,
)


def _named(name: str) -> Any:
    """Return a class that was imported already, by its full name."""
    import sys

    module, _, rest = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, head = module.rpartition(".")
        rest = f"{head}.{rest}"
    found: Any = sys.modules[module]
    for part in rest.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise ValueError(f"treespec_loads: {name} is no class")
    return found


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES or not issubclass(kind, tuple) or not is_namedtuple(kind):
        return kind
    return namedtuple


def is_structseq_instance(obj: Any) -> bool:
    """Return whether this is a struct sequence, and no class of them."""
    return not isinstance(obj, type) and is_structseq(obj)


def is_structseq_class(cls: Any) -> bool:
    """Return whether this is a class of struct sequences."""
    return isinstance(cls, type) and is_structseq(cls)
