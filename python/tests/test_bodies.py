"""Bodies: what is refused within one, and how often one is run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import muesli
import pytest


def within(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine, which is not to wait without end."""
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def beside(call: Callable[[], object]) -> None:
    """Calls a function on another thread, which is in no body."""
    other = threading.Thread(target=call)
    other.start()
    other.join()


def test_calls_of_either_kind_are_refused_within_bodies_of_either_kind(
    procedures_db: muesli.Database,
) -> None:
    db = procedures_db
    space = db.space("s", key=muesli.STR)
    call = muesli.Call("add", space, "a", (space, b"a", 5))

    async def begins() -> None:
        async with db.aio.begin():
            pass

    calls: list[Callable[[], object]] = [
        lambda: db.put(space, "a", b"b"),
        lambda: db.run(lambda tx: None),
        db.begin,
        db.snapshot,
        lambda: db.call_all([call]),
    ]
    tasks: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: db.aio.put(space, "a", b"b"),
        lambda: db.aio.call_all([call]),
        begins,
    ]

    def body(tx: muesli.Transaction) -> None:
        for call in calls:
            with pytest.raises(muesli.MisuseError, match="use the body's own"):
                call()
        for task in tasks:
            with pytest.raises(muesli.MisuseError, match="use the body's own"):
                asyncio.run(task())

    async def async_body(tx: muesli.AsyncTransaction) -> None:
        for call in calls:
            with pytest.raises(muesli.MisuseError, match="use the body's own"):
                call()
            with pytest.raises(muesli.MisuseError, match="use the body's own"):
                await asyncio.to_thread(call)
        for task in tasks:
            with pytest.raises(muesli.MisuseError, match="use the body's own"):
                await task()

    db.run(body)
    within(db.aio.run(async_body))
    db.put(space, "a", b"b")
    with db.snapshot() as tx:
        assert tx.get(space, "a") == b"b"
        db.put(space, "a", b"c")  # A block is no body.


def test_a_task_that_a_body_has_started_is_free_after_it(db: muesli.Database) -> None:
    space = db.space("s")

    async def puts(over: asyncio.Event) -> None:
        with pytest.raises(muesli.MisuseError, match="use the body's own"):
            await db.aio.put(space, b"a", b"b")
        await over.wait()
        await db.aio.put(space, b"a", b"b")
        db.put(space, b"b", b"b")

    async def starts(tx: muesli.AsyncTransaction, over: asyncio.Event) -> asyncio.Task[None]:
        task = asyncio.create_task(puts(over))
        await asyncio.sleep(0)
        return task

    async def main() -> None:
        over = asyncio.Event()
        task = await db.aio.run(starts, over)
        over.set()
        await task
        assert await db.aio.get(space, b"a") == b"b"

    within(main())


def test_a_conflict_that_a_body_raises_after_a_rollback_is_its_own(db: muesli.Database) -> None:
    space, runs = db.space("s", value=muesli.I64), []
    with pytest.raises(muesli.ConflictError) as raised, db.begin() as tx:
        tx.put(space, b"a", tx.get(space, b"a", 0) + 1)
        db.put(space, b"a", 10)
    assert raised.value.retryable

    def gives_up(tx: muesli.Transaction) -> None:
        runs.append("thread")
        tx.rollback()
        raise raised.value

    async def gives_up_as_a_task(tx: muesli.AsyncTransaction) -> None:
        runs.append("task")
        await tx.rollback()
        raise raised.value

    with pytest.raises(muesli.ConflictError):
        db.run(gives_up)
    with pytest.raises(muesli.ConflictError):
        within(db.aio.run(gives_up_as_a_task))
    assert runs == ["thread", "task"]


def test_the_timeout_is_that_of_all_attempts(db: muesli.Database) -> None:
    space, runs = db.space("s", value=muesli.I64), []

    def overtaken(tx: muesli.Transaction) -> None:
        runs.append(tx.get(space, b"a", 0))
        beside(lambda: db.put(space, b"a", len(runs)))
        time.sleep(0.3)
        tx.put(space, b"a", -1)

    async def overtaken_as_a_task(tx: muesli.AsyncTransaction) -> None:
        runs.append(await tx.get(space, b"a", 0))
        beside(lambda: db.put(space, b"a", len(runs)))
        await asyncio.sleep(0.3)
        await tx.put(space, b"a", -1)

    with pytest.raises(muesli.TransactionTimeoutError):
        db.timeout(0.4).run(overtaken)
    assert len(runs) <= 2
    runs.clear()
    db.delete(space, b"a")
    with pytest.raises(muesli.TransactionTimeoutError):
        within(db.timeout(0.4).aio.run(overtaken_as_a_task))
    assert len(runs) <= 2
