"""Trees of containers, as PyTorch 2.13 takes them apart, writes and puts them together."""

import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import pytensorlib as torch
from pytensorlib.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
# A tree, its leaves, the ways to them, and its structure as PyTorch prints it.
TREES = [
    (
        {"b": 1, "a": [2, (3, None)]},
        [1, 2, 3, None],
        "['b'] ['a'][0] ['a'][1][0] ['a'][1][1]",
        "TreeSpec(dict, ['b', 'a'], [*,\n  TreeSpec(list, None, [*,\n"
        "    TreeSpec(tuple, None, [*,\n      *])])])",
    ),
    (OrderedDict(z=1, a=2), [1, 2], "['z'] ['a']", "TreeSpec(OrderedDict, ['z', 'a'], [*,\n  *])"),
    (deque([1, 2], maxlen=4), [1, 2], "[0] [1]", "TreeSpec(deque, 4, [*,\n  *])"),
    ([], [], "", "TreeSpec(list, None, [])"),
    (5, [5], "", "*"),
]


@pytest.mark.parametrize(("tree", "leaves", "paths", "shown"), TREES)
def test_tree_comes_apart_and_together(tree, leaves, paths, shown):
    found, spec = pytree.tree_flatten(tree)
    assert found == leaves == pytree.tree_leaves(tree)
    assert str(spec) == shown
    assert spec.num_leaves == len(leaves)
    assert pytree.tree_unflatten(found, spec) == tree
    assert type(pytree.tree_unflatten(found, spec)) is type(tree)
    assert " ".join(pytree.keystr(p) for p, _ in pytree.tree_leaves_with_path(tree)) == paths
    for path, leaf in pytree.tree_leaves_with_path(tree):
        assert pytree.key_get(tree, path) is leaf
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert hash(spec) == hash(pytree.tree_structure(tree))


def test_named_tuples_and_default_dicts_keep_their_kind():
    tree = {"p": Point(1, [2]), "d": defaultdict(list, {"q": 3})}
    doubled = pytree.tree_map(lambda x: 2 * x, tree)
    assert doubled == {"p": Point(2, [4]), "d": {"q": 6}}
    assert type(doubled["p"]) is Point and doubled["d"].default_factory is list
    # PyTorch's text.
    text = pytree.treespec_dumps(pytree.tree_structure(defaultdict(list, {"q": 1})))
    assert text == (
        '[1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", '
        '"default_factory_name": "list", "dict_context": ["q"]}, "children_spec": [{"type": null, '
        '"context": null, "children_spec": []}]}]'
    )
    assert pytree.treespec_loads(text).unflatten([7]) == {"q": 7}


def test_registered_class_is_a_container_until_it_is_forgotten():
    class Box:
        def __init__(self, value):
            self.value = value

    pytree.register_pytree_node(Box, lambda b: ([b.value], None), lambda v, _: Box(*v))
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Box, lambda b: ([b.value], None), lambda v, _: Box(*v))
    assert pytree.tree_map(str, Box(1)).value == "1"
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_leaves_with_path(Box(1))
    with pytest.raises(NotImplementedError, match="serialized_type_name"):
        pytree.treespec_dumps(pytree.tree_structure(Box(1)))
    pytree._deregister_pytree_node(Box)
    assert pytree.tree_is_leaf(Box(1))


def test_several_trees_must_match():
    assert pytree.tree_map(lambda a, b: (a, b), [1, 2], [3, {"a": 1}]) == [(1, 3), (2, {"a": 1})]
    for other in ([1], (1, 2), {"a": 1}):
        with pytest.raises(ValueError, match="mismatch"):
            pytree.tree_map(lambda a, b: 0, [1, 2], other)
    with pytest.raises(ValueError, match="refers to a pytree that holds 2"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2]))
    spread = pytree._broadcast_to_and_flatten([1, 2], pytree.tree_structure([1, (2, 3)]))
    assert spread == [1, 2, 2]
    assert pytree._broadcast_to_and_flatten([1], pytree.tree_structure([1, 2])) is None


def test_is_leaf_stops_early_and_only_maps_some():
    tree = [(1, 2), "a", 3]
    assert pytree.tree_leaves(tree, is_leaf=lambda x: isinstance(x, tuple)) == tree
    assert pytree.tree_map_only(int, lambda x: -x, tree) == [(-1, -2), "a", -3]
    assert pytree.tree_all_only((int,), lambda x: x > 0, tree)
    assert not pytree.tree_any_only(str, str.isupper, tree)


def test_results_with_names_are_made_again() -> None:
    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]])
    got = pytree.tree_map(lambda t: t + 1, torch.max(x, 1))
    assert type(got) is type(torch.max(x, 1))
    assert got.values.tolist() == [4.0, 5.0] and got.indices.tolist() == [2, 1]
