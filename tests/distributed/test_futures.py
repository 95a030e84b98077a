"""Futures: values and errors that come later, and what is called then."""

import copy
import io
import pickle
import threading

import pytest

import pytensorlib as torch
from pytensorlib.futures import Future, collect_all, wait_all


def failed(error):
    future = Future()
    future.set_exception(error)
    return future


def test_futures_hand_on_values():
    a, b = Future[int](), Future[int](devices=["cuda:0"])
    after = a.then(lambda f: f.wait() + 1).then(lambda f: f.value() * 10)
    every = collect_all([a, b])
    with pytest.raises(RuntimeError, match="no value"):
        a.value()
    a.set_result(1)
    assert after.wait() == 20 and not every.done()
    b.set_result(2)
    assert every.wait() == [a, b] and wait_all((a, b)) == [1, 2]
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        a.set_result(2)


def test_future_with_an_error_raises_it_for_all_who_wait():
    a, b = Future(), Future()
    every = collect_all([a, b])
    seen = []

    def wait():
        with pytest.raises(KeyError) as told:
            a.wait()
        seen.append(told.value)

    thread = threading.Thread(target=wait)
    thread.start()
    a.set_exception(KeyError("k"))
    thread.join()
    assert seen[0].args == ("k",) and not every.done()
    b.set_result(1)
    for ask in (a.value, every.wait, lambda: wait_all([b, a])):
        with pytest.raises(KeyError):
            ask()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        Future().set_exception(3)


@pytest.mark.parametrize(
    ("callback", "text"),
    [
        (lambda f: f + 1, r"TypeError: unsupported operand type.*Future.*int"),
        (lambda: 1, "TypeError: .*takes 0 positional arguments but 1 was given"),
        (lambda f: failed(ValueError("no")).value(), "ValueError: no"),
    ],
)
def test_then_tells_the_error_of_its_callback(callback, text):
    future = Future()
    after = future.then(callback)
    future.set_result(5)
    assert future.wait() == 5 and after.done()
    with pytest.raises(RuntimeError, match=f"Got the following error .*callback: {text}") as told:
        after.wait()
    assert told.value.__cause__ is not None


def test_interrupt_in_a_callback_is_raised_and_ends_the_future_after_it():
    def interrupted(f):
        raise KeyboardInterrupt

    future = Future()
    after = future.then(interrupted)
    with pytest.raises(KeyboardInterrupt):
        future.set_result(1)
    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        after.wait()


def test_errors_of_done_callbacks_are_logged_and_others_go_on(caplog):
    calls = []

    def fails(f):
        raise ValueError("no")

    future = Future()
    for callback in (fails, lambda: 1, lambda f: calls.append(f.value())):
        future.add_done_callback(callback)
    future.set_result(3)
    future.add_done_callback(fails)
    assert calls == [3] and future.wait() == 3
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 3
    assert texts[0] == "Got the following error when running the callback: ValueError: no"
    with pytest.raises(TypeError, match="must be callable, got int"):
        future.add_done_callback(3)
    with pytest.raises(TypeError, match="must be callable, got int"):
        future.then(3)


def test_callbacks_run_in_the_order_in_which_they_came():
    future, last = Future(), []
    future.add_done_callback(lambda f: last.append(1))
    after = future.then(lambda f: list(last))
    future.add_done_callback(lambda f: last.append(2))
    future.set_result(None)
    assert after.wait() == [1] and last == [1, 2]


def test_futures_cannot_be_pickled_or_copied():
    for save in (pickle.dumps, copy.deepcopy, lambda f: torch.save(f, io.BytesIO())):
        with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
            save(Future())


def test_none_among_futures_and_devices_without_an_index_are_refused():
    for call in (torch.jit.wait, lambda f: collect_all([Future(), f]), lambda f: wait_all([f])):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            call(None)
    with pytest.raises(TypeError, match="a Future is needed, got int"):
        collect_all([3])
    assert collect_all([]).wait() == []
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])
