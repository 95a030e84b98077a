"""Data sets, samplers and the DataLoader, by their documented behaviour."""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import os
import random
import signal
import time

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.utils.data.dataloader as loading
from pytensorlib.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from pytensorlib.utils.data._utils import worker

pytestmark = pytest.mark.forks

X, Y = torch.arange(20.0).reshape(10, 2), torch.arange(10)


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return i, float(i * i)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(7))


class WhoLoads(Squares):
    def __getitem__(self, i):
        return get_worker_info().id


class Bad(Squares):
    def __getitem__(self, i):
        raise KeyError(f"bad item {i}")


def test_loader_in_order_gives_every_row():
    batches = list(DataLoader(TensorDataset(X, Y), batch_size=4))
    assert [type(b) for b in batches] == [list] * 3
    assert [len(y) for _, y in batches] == [4, 4, 2]
    assert torch.cat([x for x, _ in batches]).tolist() == X.tolist()


def test_gathered_batches_equal_one_by_one():
    class Slow(TensorDataset):
        def __getitem__(self, i):
            return super().__getitem__(i)

    order = [3, -1, 0, 9]
    for fast, slow in ((TensorDataset(X, Y), Slow(X, Y)),
                       (Subset(TensorDataset(X, Y), [5, 6, 7] * 4), Subset(Slow(X, Y), [5, 6, 7] * 4))):  # fmt: skip  # noqa: E501
        a = list(DataLoader(fast, batch_size=3, sampler=order))
        b = list(DataLoader(slow, batch_size=3, sampler=order))
        assert [[t.tolist() for t in p] for p in a] == [[t.tolist() for t in p] for p in b]
        assert [t.dtype for t in a[0]] == [t.dtype for t in b[0]]


def test_gathered_index_out_of_range_raises():
    with pytest.raises(IndexError):
        list(DataLoader(TensorDataset(X, Y), sampler=[10]))


def test_shuffle_covers_all_and_depends_on_the_seed_alone():
    def order(seed):
        torch.manual_seed(seed)
        return torch.cat([y for _, y in DataLoader(TensorDataset(X, Y), 3, shuffle=True)]).tolist()

    assert sorted(order(1)) == list(range(10))
    assert order(1) == order(1)
    assert order(1) != order(2)


def test_shuffle_generator_leaves_the_default_one_alone():
    torch.manual_seed(0)
    want = torch.rand(2).tolist()
    torch.manual_seed(0)
    list(DataLoader(Squares(), shuffle=True, generator=torch.Generator().manual_seed(1)))
    assert torch.rand(2).tolist() == want


@pytest.mark.parametrize(("drop", "sizes"), [(False, [4, 4, 2]), (True, [4, 4])])
def test_drop_last_sets_the_length(drop, sizes):
    loader = DataLoader(Squares(), batch_size=4, drop_last=drop)
    assert [len(i) for i, _ in loader] == sizes
    assert len(loader) == len(sizes)


def test_batch_size_none_gives_samples():
    assert list(DataLoader(Squares(), batch_size=None))[3] == [3, 9.0]


def test_batch_sampler_and_collate_fn_are_used():
    loader = DataLoader(Squares(), batch_sampler=[[1, 2], [3]], collate_fn=lambda b: b)
    assert list(loader) == [[(1, 1.0), (2, 4.0)], [(3, 9.0)]]


def test_iterable_data_set_is_batched():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=3, drop_last=True)] == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    assert list(ChainDataset([Stream(), Stream()])) == [*range(7), *range(7)]


def test_workers_give_the_same_batches_in_order():
    want = [(i.tolist(), v.tolist()) for i, v in DataLoader(Squares(), batch_size=3)]
    got = [(i.tolist(), v.tolist()) for i, v in DataLoader(Squares(), 3, num_workers=2)]
    assert got == want


def test_worker_info_numbers_the_workers():
    assert get_worker_info() is None
    seen = torch.cat(list(DataLoader(WhoLoads(), num_workers=2))).tolist()
    assert seen == [0, 1] * 5


def test_worker_error_is_raised_again():
    with pytest.raises(KeyError, match="bad item 0"):
        list(DataLoader(Bad(), batch_size=4, num_workers=2))


def test_concat_subset_and_split():
    joined = ConcatDataset([range(3), range(10, 14)])
    assert [joined[i] for i in range(len(joined))] == [0, 1, 2, 10, 11, 12, 13]
    assert joined[-1] == 13
    parts = random_split(range(10), [0.5, 0.3, 0.2])
    assert [len(p) for p in parts] == [5, 3, 2]
    assert sorted(v for p in parts for v in p) == list(range(10))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(range(10), [5, 6])
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(X, torch.zeros(3))


def test_distributed_sampler_without_a_group_asks_for_its_share():
    with pytest.raises(ValueError, match="^Default process group has not been initialized"):
        DistributedSampler(range(4))


def test_distributed_sampler_is_found_where_scripts_import_it_from():
    from pytensorlib.utils.data.distributed import DistributedSampler as found

    assert found is DistributedSampler is torch.utils.data.distributed.DistributedSampler


def test_samplers():
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert sorted(RandomSampler(range(9))) == list(range(9))
    assert len(list(RandomSampler(range(3), replacement=True, num_samples=40))) == 40
    counts = collections.Counter(RandomSampler(range(4), num_samples=8))
    assert set(counts.values()) == {2}
    assert sorted(SubsetRandomSampler([4, 8, 6])) == [4, 6, 8]
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    shares = [list(DistributedSampler(range(7), 3, r, seed=1)) for r in range(3)]
    assert [len(s) for s in shares] == [3, 3, 3]
    assert {i for share in shares for i in share} == set(range(7))


def test_collate_each_kind_of_sample():
    Point = collections.namedtuple("Point", "x y")
    got = default_collate([{"a": 1, "b": [2.5, "s"], "c": Point(np.ones(2), True)}] * 2)
    assert got["a"].tolist() == [1, 1]
    assert got["a"].dtype == torch.int64
    assert got["b"][0].dtype == torch.float64
    assert list(got["b"][1]) == ["s", "s"]
    assert type(got["c"]) is Point
    assert got["c"].x.shape == (2, 2)
    assert got["c"].y.dtype == torch.bool
    assert default_convert((np.zeros(2), "s"))[0].tolist() == [0, 0]
    with pytest.raises(TypeError, match="must contain tensors"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([torch.zeros(2), torch.zeros(3)])


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"num_workers": -1}, "non-negative"),
        ({"shuffle": True, "sampler": [0]}, "mutually exclusive"),
        ({"batch_sampler": [[0]], "drop_last": True}, "mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive"),
        ({"prefetch_factor": 2}, "let num_workers > 0"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        (
            {"multiprocessing_context": "spawn"},
            r"multi-process loading \(num_workers > 0\), but got",
        ),
    ],
)
def test_loader_contradicting_options_raise(kwargs, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(Squares(), **kwargs)


class Reporting(Dataset):
    """What a worker's random numbers and number are, for six indices."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return i, get_worker_info().id, random.random(), torch.rand(1).item(), np.random.rand()  # noqa: NPY002


class Failing(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 3:
            raise self.error
        return i


class Split(IterableDataset):
    def __init__(self, n, bad=None):
        self.n, self.bad = n, bad

    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id, self.n, info.num_workers):
            if i == self.bad:
                raise ValueError(f"bad {i}")
            yield i


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def drawn(**options):
    torch.manual_seed(0)
    loader = DataLoader(Reporting(), 2, num_workers=2, collate_fn=list, **options)
    return [[row for batch in loader for row in batch] for _ in range(2)]


def test_workers_seeds_are_pytorchs():
    first, second = drawn()
    assert [row[1] for row in first] == [0, 0, 1, 1, 0, 0]
    # Recorded from PyTorch 2.13 after manual_seed(0).
    for row, want in zip(
        first,
        [
            (0.21315340548154382, 0.7821398973464966, 0.8371640508861415),
            (0.2764485855185723, 0.053598999977111816, 0.38757835109739946),
            (0.7733861492043289, 0.6938178539276123, 0.6702704958690073),
            (0.1634220007200502, 0.29795897006988525, 0.07589687641367027),
        ],
        strict=False,
    ):
        assert row[2:] == want
    assert first == drawn()[0]
    assert first != second
    # Workers that stay go on drawing; they are not seeded again.
    stay = drawn(persistent_workers=True)
    assert stay[0] == first
    assert stay[1] != second
    assert not {r[2] for r in stay[1]} & {r[2] for r in stay[0]}


def test_generator_gives_pytorchs_order_in_every_pass():
    for workers in (0, 2):
        generator = torch.Generator().manual_seed(3)
        loader = DataLoader(range(10), 3, True, generator=generator, num_workers=workers)
        passes = [[i for batch in loader for i in batch.tolist()] for _ in range(2)]
        assert passes[0] == [7, 4, 2, 9, 1, 5, 0, 8, 6, 3]
        assert passes[1] == [1, 2, 0, 5, 9, 4, 8, 3, 6, 7]


@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize(
    ("dataset", "want"),
    [(Failing(ValueError("x")), [0, 1, 2, None, 4, 5]), (Split(7, 4), [0, 1, 2, 3, None, 5])],
)
def test_loading_goes_on_after_an_error(dataset, want, stay):
    batches = iter(DataLoader(dataset, 1, num_workers=2, persistent_workers=stay))
    for number in want:
        if number is None:
            with pytest.raises(ValueError, match="Original Traceback"):
                next(batches)
        else:
            assert next(batches).item() == number
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (KeyError("k"), KeyError, "^Caught KeyError in DataLoader worker process 1"),
        (TwoArguments(1, 2), RuntimeError, "Caught TwoArguments in DataLoader worker process 1"),
        (AssertionError(), AssertionError, "Caught AssertionError"),
    ],
)
def test_errors_of_workers_keep_their_kind(error, kind, text):
    with pytest.raises(kind, match=text):
        list(DataLoader(Failing(error), 1, num_workers=2))


def fail_to_start(number):
    raise RuntimeError(f"no {number}")


def test_worker_that_fails_to_start_raises():
    with pytest.raises(RuntimeError, match="no 0"):
        list(DataLoader(range(4), num_workers=2, worker_init_fn=fail_to_start))


class Dying(Failing):
    def __getitem__(self, i):
        if i == 2:
            os._exit(3)
        return i


def test_worker_that_dies_raises():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Dying(None), 1, num_workers=2))


def test_breaking_out_and_beginning_again():
    for stay in (False, True):
        loader = DataLoader(range(20), 2, num_workers=2, persistent_workers=stay)
        for _ in range(3):
            for batch in loader:
                assert batch.tolist() == [0, 1]
                break
        assert [i for batch in loader for i in batch.tolist()] == list(range(20))
    both = DataLoader(range(4), num_workers=2)
    assert all(torch.equal(a, b) for a, b in zip(both, both, strict=True))


def test_iterable_without_batches_from_workers():
    got = [DataLoader(Split(5), None, num_workers=2, persistent_workers=True)] * 2
    assert [list(loader) for loader in got] == [[0, 1, 2, 3, 4]] * 2
    unordered = DataLoader(range(9), 2, num_workers=2, in_order=False)
    assert sorted(i for batch in unordered for i in batch.tolist()) == list(range(9))


def test_options_are_fixed_and_checked():
    loader = DataLoader(range(4), 2)
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3
    with pytest.raises(ValueError, match="valid start method"):
        DataLoader(range(4), num_workers=2, multiprocessing_context="bad")
    with pytest.raises(TypeError, match="valid context object"):
        DataLoader(range(4), num_workers=2, multiprocessing_context=3)
    with pytest.warns(UserWarning, match="will create 5000 worker.*slow or even freeze"):
        DataLoader(range(4), num_workers=5000)
    for option, value in (("sampler", [0]), ("batch_sampler", [[0]]), ("shuffle", True)):
        with pytest.raises(ValueError, match=f"unspecified {option} option, but got {option}="):
            DataLoader(Stream(), **{option: value})
    with pytest.raises(TypeError, match="replacement should be a boolean value, but got rep.*=0"):
        RandomSampler(range(3), replacement=0)
    with pytest.raises(AssertionError, match="timeout == 0"):
        iter(DataLoader(range(4), timeout=1))


class Own:
    """A loader that is none of ours: what PyTorch's passes ask one for, and no more."""

    _IterableDataset_len_called, _auto_collation, drop_last = None, False, False
    generator, prefetch_factor, timeout, worker_init_fn = None, 2, 0, None
    pin_memory, pin_memory_device, persistent_workers, in_order = False, "", False, True

    def __init__(self, data, num_workers):
        self.dataset, self.num_workers = data, num_workers
        self.multiprocessing_context = multiprocessing if num_workers else None
        iterable = isinstance(data, IterableDataset)
        self._dataset_kind = loading._DatasetKind.Iterable if iterable else 0
        self._index_sampler = range(100) if iterable else range(len(data))

    @staticmethod
    def collate_fn(sample):
        return sample


def test_passes_go_over_a_loader_of_the_programs_own():
    single, several = (
        loading._SingleProcessDataLoaderIter,
        loading._MultiProcessingDataLoaderIter,
    )
    assert list(single(Own(Stream(), 0))) == list(range(7))
    assert list(several(Own(Split(5), 2))) == list(range(5))
    squares = [(i, float(i * i)) for i in range(10)]
    for of, workers in ((single, 0), (several, 2)):
        assert list(of(Own(Squares(), workers))) == squares
    with pytest.raises(AssertionError, match="num_workers == 0"):
        single(Own(Squares(), 2))
    with pytest.raises(AssertionError, match="num_workers must be greater than 0"):
        several(Own(Squares(), 0))


def test_loader_has_the_attributes_that_programs_ask_for():
    loader = DataLoader(range(4), 2)
    assert loader._auto_collation and loader._index_sampler is loader.batch_sampler
    assert loader._dataset_kind == loading._DatasetKind.Map == 0 and loader._iterator is None
    single = DataLoader(Stream(), None)
    assert not single._auto_collation and single._index_sampler is single.sampler
    assert isinstance(single.sampler, loading._InfiniteConstantSampler)
    found = iter(DataLoader(range(4), num_workers=1))
    assert isinstance(found, loading._MultiProcessingDataLoaderIter)
    assert len(found) == 4 and len(found._workers) == 1
    found._shutdown_workers()
    assert not found._workers[0].is_alive()

    class Twice(DataLoader):
        def _get_iterator(self):
            return itertools.chain(super()._get_iterator(), super()._get_iterator())

    assert [b.tolist() for b in Twice(range(2))] == [[0], [1]] * 2
    fetched = loading._DatasetKind.create_fetcher(0, Squares(), False, lambda x: x, False).fetch(2)
    assert fetched == (2, 4.0)


def test_workers_that_stay_give_every_sample_of_each_pass_once():
    torch.manual_seed(0)
    loader = DataLoader(range(50), 2, shuffle=True, num_workers=2, persistent_workers=True)
    for _ in range(5):
        next(iter(loader))  # the rest of this pass is on its way
        assert sorted(i for batch in loader for i in batch.tolist()) == list(range(50))


class Killed(Failing):
    def __getitem__(self, i):
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Failing):
    def __getitem__(self, i):
        if get_worker_info().id == 0:
            time.sleep(0.5)
        return i


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_worker_that_a_signal_ends_is_told_with_the_signal():
    with pytest.raises(RuntimeError, match=r"worker \(pid \d+\) is killed by signal: Killed"):
        list(DataLoader(Killed(None), 1, num_workers=1))
    with pytest.raises(RuntimeError, match="timed out after 0.1 seconds"):
        list(DataLoader(Slow(None), 1, num_workers=1, timeout=0.1))


def test_batches_out_of_order_come_from_workers_that_are_quick():
    loader = DataLoader(Slow(None), None, num_workers=2, in_order=False)
    got = [int(i) for i in loader]
    assert sorted(got) == list(range(6)) and got[0] == 1 and got[-1] == 2


def test_worker_info_cannot_be_changed():
    info = worker.WorkerInfo(1, 2, 3, None)
    for name in ("id", "a"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(info, name, 0)
    assert all(f"{name}=" in repr(info) for name in ("id", "num_workers", "seed", "dataset"))


def test_pinned_memory_without_an_accelerator_warns(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no acc"):
        batches = list(DataLoader(range(2), 2, pin_memory=True))
    assert batches[0].tolist() == [0, 1]

    class Own(list):
        def pin_memory(self):
            return "pinned"

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert list(DataLoader(range(2), 2, pin_memory=True, collate_fn=Own)) == ["pinned"]


def test_stack_and_subset_ask_for_samples_at_once():
    class Several(Squares):
        def __getitems__(self, indices):
            return [i * 10 for i in indices]

    stack = torch.utils.data.StackDataset(a=Several(), b=list(range(10)))
    assert stack.__getitems__([1, 3]) == [{"a": 10, "b": 1}, {"a": 30, "b": 3}]
    assert torch.utils.data.StackDataset(Several()).__getitems__([2]) == [(20,)]

    class Fewer(Squares):
        def __getitems__(self, indices):
            return indices[:-1]

    with pytest.raises(ValueError, match="output size mismatch. Expected 4, got 3"):
        torch.utils.data.StackDataset(Fewer()).__getitems__([0, 1, 2, 3])

    class Mine(Subset):
        def __getitem__(self, i):
            return i

    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        Mine(range(3), [0])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(2), [0.9, 0.1])


class Twelve(IterableDataset):
    def __iter__(self):
        return iter(range(12))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["shuffled", "generator", "replacement", "ranks", "stream"])
def test_loader_goes_on_where_another_was(kind: str, workers: int) -> None:
    def made() -> DataLoader:
        more = {}
        data = Twelve() if kind == "stream" else torch.arange(12)
        if kind == "ranks":
            more["sampler"] = DistributedSampler(data, num_replicas=2, rank=1)
        elif kind == "replacement":
            more["sampler"] = RandomSampler(data, replacement=True, num_samples=12)
        elif kind != "stream":
            more["shuffle"] = True
        if kind == "generator":
            more["generator"] = torch.Generator().manual_seed(5)
        return DataLoader(data, batch_size=2, num_workers=workers, **more)

    torch.manual_seed(3)
    loader = made()
    if kind == "ranks":
        loader.sampler.set_epoch(4)
    batches, given = iter(loader), []
    for _ in range(2):
        given.append(next(batches).tolist())
        torch.rand(3)  # the program's own draws are no matter
    state, numbers = loader.state_dict(), torch.get_rng_state()
    rest = [batch.tolist() for batch in batches]
    after = [batch.tolist() for batch in loader] if kind != "generator" else []
    torch.manual_seed(99)
    again = made()
    again.load_state_dict(state)
    torch.set_rng_state(numbers)
    assert [batch.tolist() for batch in again] == rest
    assert len(rest) > 0 and rest != given
    if kind != "generator":  # the next pass begins from the program's random state
        assert [batch.tolist() for batch in again] == after
    assert again.state_dict()["batches"] == 0


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: DataLoader([1], multiprocessing_context="spawn"),
            ValueError,
            r"multi-process loading \(num_workers > 0\), but got num_workers=0",
        ),
        (
            lambda: DataLoader([1], prefetch_factor=2),
            ValueError,
            "prefetch_factor option could only be specified in multiprocessing",
        ),
        (
            lambda: torch.utils.data.RandomSampler([1], replacement=0),
            TypeError,
            "but got replacement=0",
        ),
        (
            lambda: torch.utils.data.WeightedRandomSampler([1.0], 1, replacement=0),
            ValueError,
            "but got replacement=0",
        ),
        (lambda: torch.utils.data.StackDataset(), ValueError, "At least one dataset"),
        (lambda: torch.utils.data.StackDataset([1], x=[1]), ValueError, "Supported either"),
    ],
)
def test_loaders_and_samplers_refuse_options_in_pytorchs_words(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_more_workers_than_processors_warn_of_a_freeze():
    with pytest.warns(UserWarning, match="might get DataLoader running slow or even freeze"):
        DataLoader([1], num_workers=1000)


def test_random_order_of_nothing_raises() -> None:
    for call in (
        lambda: DataLoader([], shuffle=True),
        lambda: RandomSampler([], replacement=True),
        lambda: RandomSampler(range(3), num_samples=0),
    ):
        with pytest.raises(ValueError, match="num_samples should be a positive integer value"):
            call()
    assert list(DataLoader([])) == []
