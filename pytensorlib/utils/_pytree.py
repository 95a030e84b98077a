"""Trees of containers: taken apart into leaves, and put together again."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple",
    "is_structseq",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
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
    """What a class is called in text, and how its context is written."""

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


_by_index = _keyed(_list_flatten, SequenceKey)
_plain(tuple, _list_flatten, lambda values, _: tuple(values), _by_index)
_plain(list, _list_flatten, lambda values, _: list(values), _by_index)
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
    lambda values, cls: cls(*values),
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


class TreeSpec:
    """The structure of a tree: what is left of it without the leaves.

    Parameters
    ----------
    type : type or None
        Of the container; None for a leaf.
    context : object
        What the class keeps beside its children.
    children_specs : list of TreeSpec
        Of its children.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> spec = pytree.tree_structure({"a": 1, "b": [2, 3]})
    >>> spec.num_leaves, spec.unflatten("xyz")
    (3, {'a': 'x', 'b': ['y', 'z']})
    """

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any = None, children_specs: Any = ()) -> None:
        self.type, self.context, self._children = type, context, list(children_specs)
        leaf = type is None
        self.num_children = len(self._children)
        self.num_leaves = 1 if leaf else sum(c.num_leaves for c in self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the children."""
        return self._children

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of a child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Return whether it is that of a leaf."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        context = self.context
        if isinstance(context, list):
            context = repr(context)
        return hash((self.type, context, tuple(self._children)))

    def __getstate__(self) -> Any:
        return self.type, self.context, self._children

    def __setstate__(self, state: Any) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        name = getattr(self.type, "__name__", str(self.type))
        inner = [c.__repr__(indent + 2) for c in self._children]
        pad = ",\n" + " " * (indent + 2)
        body = pad.join(inner)
        return f"TreeSpec({name}, {self.context}, [{body}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves.

        Parameters
        ----------
        leaves : iterable
            As many as there are.

        Raises
        ------
        ValueError
            There are more, or fewer.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> Any:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return what a tree has where this structure has leaves.

        Parameters
        ----------
        tree : tree
            Of this structure, with any trees for leaves.

        Raises
        ------
        ValueError
            Its structure is another one.
        """
        found: list[Any] = []
        self._match(tree, found)
        return found

    def _match(self, tree: Any, found: list[Any]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        alike = (dict, OrderedDict, defaultdict)
        if kind is not self.type and not (kind in alike and self.type in alike):
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if self.type in alike:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {keys}, got {list(tree)}.")
            children = [tree[key] for key in keys]
        elif context != self.context and kind is not deque:
            raise ValueError(f"Node context mismatch; expected {self.context}, got {context}.")
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        for spec, child in zip(self._children, children, strict=True):
            spec._match(child, found)


class _LeafSpec(TreeSpec):
    __slots__ = ()

    def __init__(self, *_: Any) -> None:
        super().__init__(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and other.is_leaf()

    def __hash__(self) -> int:
        return hash(None)


LeafSpec = _LeafSpec
PyTreeSpec = TreeSpec
_LEAF = LeafSpec()
IsLeaf = Callable[[Any], bool] | None


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether an object is no container of a known class.

    Parameters
    ----------
    tree : object
        Anything.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    bool
        True of None too.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_is_leaf(None), pytree.tree_is_leaf([])
    (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = _get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Take a tree apart into leaves and structure.

    Parameters
    ----------
    tree : tree
        Lists, tuples, dicts and other known containers, and what is in them.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tuple of list and TreeSpec
        Dicts keep the order of their keys.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> leaves, spec = pytree.tree_flatten({"a": 1, "b": (2, None)})
    >>> leaves, pytree.tree_unflatten("xyz", spec)
    ([1, 2, None], {'a': 'x', 'b': ('y', 'z')})
    """
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put a tree together.

    Parameters
    ----------
    leaves : iterable
        As many as there are in `treespec`.
    treespec : TreeSpec
        The structure.

    Returns
    -------
    tree
        Of this structure.

    Raises
    ------
    TypeError
        `treespec` is none.
    ValueError
        There are more leaves, or fewer.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_unflatten([1, 2], pytree.tree_structure((0, 0)))
    (1, 2)
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """Yield the leaves of a tree.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> list(pytree.tree_iter([1, (2, [])]))
    [1, 2]
    """
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    list
        In order.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_leaves({"b": 1, "a": [2, 3]})
    [1, 2, 3]
    """
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a tree.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    TreeSpec
        Equal for trees that differ in their leaves only.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_structure([1, {"a": 2}])
    TreeSpec(list, None, [*,
      TreeSpec(dict, ['a'], [*])])
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a tree with ``func`` of each leaf.

    Parameters
    ----------
    func : callable
        Takes a leaf of `tree` and what the others have in its place.
    tree : tree
        Any.
    *rests : tree
        Of the same structure, at least down to where `tree` has leaves.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        Of the structure of `tree`.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, leaves, *others))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call ``func`` of each leaf and return the tree as it was.

    Parameters
    ----------
    func : callable
        Takes a leaf of `tree` and what the others have in its place.
    tree : tree
        Any.
    *rests : tree
        Of the same structure.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        The same object.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_(print, [1])
    1
    [1]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _is_a(kinds: Any) -> Callable[[Any], bool]:
    if isinstance(kinds, (type, tuple)) or hasattr(kinds, "__or__"):
        try:
            isinstance(None, kinds)
        except TypeError:
            return kinds
        return lambda x: isinstance(x, kinds)
    return kinds


def map_only(kinds: Any, /) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator whose function leaves objects of other classes as they are.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which objects are meant.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.map_only(int)(lambda x: -x)("a")
    'a'
    """
    chosen = _is_a(kinds)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map_only(
    kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Return a tree with ``func`` of the leaves of some classes.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    func : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        Of the same structure.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_only(int, lambda x: -x, [1, "a"])
    [-1, 'a']
    """
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """Call ``func`` of the leaves of some classes and return the tree as it was.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    func : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        The same object.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_only_(int, print, [1, "a"])
    1
    [1, 'a']
    """
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether something is true of all leaves.

    Parameters
    ----------
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_all(bool, [1, [0]])
    False
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether something is true of a leaf.

    Parameters
    ----------
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_any(bool, [1, [0]])
    True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether something is true of all leaves of some classes.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    True
    """
    chosen = _is_a(kinds)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def tree_any_only(
    kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether something is true of a leaf of some classes.

    Parameters
    ----------
    kinds : type, tuple of types or callable
        Which leaves are meant.
    pred : callable
        Takes a leaf.
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_any_only(str, str.isupper, [1, "a"])
    False
    """
    chosen = _is_a(kinds)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def _walk(path: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterable[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _get_node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _walk((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree, each with the way to it.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    list of tuples
        Keys from the root on, and the leaf.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> [(pytree.keystr(p), v) for p, v in pytree.tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_walk((), tree, is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Take a tree apart into leaves, each with the way to it, and structure.

    Parameters
    ----------
    tree : tree
        Any.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tuple of list and TreeSpec
        As of `tree_leaves_with_path` and `tree_structure`.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_flatten_with_path([1])[0]
    [((SequenceKey(idx=0),), 1)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None
) -> Any:
    """Return a tree with ``func`` of each leaf and the way to it.

    Parameters
    ----------
    func : callable
        Takes the way, the leaf, and what the others have in its place.
    tree : tree
        Any.
    *rests : tree
        Of the same structure.
    is_leaf : callable, optional
        Says of more objects that they are leaves.

    Returns
    -------
    tree
        Of the structure of `tree`.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.tree_map_with_path(lambda path, x: pytree.keystr(path), {"a": 1})
    {'a': "['a']"}
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    paths, leaves = zip(*pairs, strict=True) if pairs else ((), ())
    return spec.unflatten(map(func, paths, leaves, *others))


def keystr(kp: KeyPath) -> str:
    """Return the way to a leaf as Python would write it.

    Parameters
    ----------
    kp : tuple of keys
        As of `tree_leaves_with_path`.

    Returns
    -------
    str
        For example ``"['a'][0]"``.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.keystr((pytree.MappingKey("a"), pytree.SequenceKey(0)))
    "['a'][0]"
    """
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what is at the end of a way.

    Parameters
    ----------
    obj : tree
        Any.
    kp : tuple of keys
        As of `tree_leaves_with_path`.

    Returns
    -------
    object
        A leaf, or a part of the tree.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.key_get({"a": [5]}, (pytree.MappingKey("a"), pytree.SequenceKey(0)))
    5
    """
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """Return a leaf for each of a structure's, where a tree has one for all below it, or None."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def _told(spec: TreeSpec) -> Mapping[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name is None:
        raise NotImplementedError(
            f"Serializing {spec.type} in pytree is not supported: register it with a "
            "serialized_type_name"
        )
    context = spec.context
    try:
        text = json.dumps(context) if known.to_dumpable_context is None else None
        text = text or known.to_dumpable_context(context)  # type: ignore[misc]
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a "
            "custom serializer using register_pytree_node."
        ) from error
    children = [_told(child) for child in spec.children_specs]
    return {"type": known.serialized_type_name, "context": text, "children_spec": children}


def _read(told: Any) -> TreeSpec:
    if told["type"] is None:
        return _LEAF
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(told["type"])
    if kind is None:
        raise NotImplementedError(f"Deserializing {told['type']} in pytree is not registered.")
    known = SUPPORTED_SERIALIZED_TYPES[kind]
    context = told["context"]
    read = known.from_dumpable_context or json.loads
    context = read(context)
    return TreeSpec(kind, context, [_read(child) for child in told["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Write a structure as text.

    Parameters
    ----------
    treespec : TreeSpec
        Of classes that have names for it.
    protocol : int, optional
        1, the only one.

    Returns
    -------
    str
        JSON.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> spec = pytree.tree_structure({"a": [1, 2]})
    >>> pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec): expected a TreeSpec, got {type(treespec)}")
    if protocol not in (None, VERSION):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{VERSION}]")
    return json.dumps((VERSION, _told(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """Read a structure that `treespec_dumps` wrote.

    Parameters
    ----------
    serialized : str
        JSON.

    Returns
    -------
    TreeSpec
        An equal one.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> text = pytree.treespec_dumps(pytree.tree_structure((1, 2)))
    >>> pytree.treespec_loads(text).unflatten("ab")
    ('a', 'b')
    """
    version, told = json.loads(serialized)
    if version != VERSION:
        raise ValueError(f"Unknown protocol {version}. Available protocols: [{VERSION}]")
    return _read(told)


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a structure as it looks with stars for leaves.

    Parameters
    ----------
    treespec : TreeSpec
        Any.

    Returns
    -------
    str
        For people.

    Examples
    --------
    >>> from pytensorlib.utils import _pytree as pytree
    >>> pytree.treespec_pprint(pytree.tree_structure({"a": [1, 2]}))
    "{'a': [*, *]}"
    """

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star()] * treespec.num_leaves))
