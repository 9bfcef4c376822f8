"""Transactions of asyncio's tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import muesli
import pytest
from muesli import _asyncio


def within(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine, which is not to wait without end."""
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def test_an_async_function_is_a_transaction(any_db: muesli.Database) -> None:
    accounts = any_db.space("accounts", key=muesli.STR, value=muesli.I64)
    aio = any_db.aio

    @aio.transaction
    async def transfer(tx: muesli.AsyncTransaction, source: str, target: str) -> int:
        left, there = await asyncio.gather(
            tx.get(accounts, source, 0), tx.get(accounts, target, 0)
        )
        await asyncio.sleep(0)
        await tx.put(accounts, source, left - 30)
        await tx.put(accounts, target, there + 30)
        return left - 30

    async def main() -> None:
        await aio.put(accounts, "ann", 100)
        assert await transfer("ann", "bob") == 70
        assert await aio.get(accounts, "bob") == 30
        assert await aio.get(accounts, "eve") is None
        assert await aio.get(accounts, "eve", 7) == 7
        await aio.delete(accounts, "bob")
        async with aio.snapshot() as tx:
            assert await tx.get_many(accounts, ["ann", "bob"]) == [70, None]

    within(main())


def test_tasks_lose_no_update(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.U8, value=muesli.I64)

    @any_db.aio.transaction
    async def add(tx: muesli.AsyncTransaction, key: int) -> None:
        value = await tx.get(space, key, 0)
        await asyncio.sleep(0)
        await tx.put(space, key, value + 1)

    async def main() -> None:
        await asyncio.gather(*(add(number % 2) for number in range(40)))

    within(main())
    assert any_db.get(space, 0) == 20
    assert any_db.get(space, 1) == 20
    assert any_db.conflicts() > 0


def test_ranges_are_iterated(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.U32, value=muesli.U32)

    async def main() -> None:
        async with any_db.aio.begin() as tx:
            for number in range(100):
                await tx.put(space, number, number)
            await tx.delete(space, 50)
        async with any_db.aio.snapshot() as tx:
            rows = [row async for row in tx.scan(space, 40, reverse=True)]
        assert rows == [(number, number) for number in range(99, 39, -1) if number != 50]

    within(main())


def test_an_exception_rolls_back(db: muesli.Database) -> None:
    space = db.space("s")

    async def fails(tx: muesli.AsyncTransaction) -> None:
        await tx.put(space, b"a", b"b")
        raise KeyError

    async def main() -> None:
        with pytest.raises(KeyError):
            await db.aio.run(fails)
        with pytest.raises(KeyError):
            async with db.aio.begin() as tx:
                await fails(tx)
        async with db.aio.begin() as tx:
            await tx.put(space, b"a", b"b")
            await tx.rollback()
        assert await db.aio.get(space, b"a") is None

    within(main())


def test_a_block_raises_the_conflict(any_db: muesli.Database) -> None:
    space = any_db.space("s", value=muesli.I64)

    async def main() -> None:
        with pytest.raises(muesli.ConflictError):
            async with any_db.aio.begin() as tx:
                await tx.put(space, b"a", (await tx.get(space, b"a", 0)) + 1)
                await any_db.aio.put(space, b"a", 10)
        assert await any_db.aio.get(space, b"a") == 10

    within(main())


def test_conflicts_without_end_are_raised() -> None:
    with muesli.open(attempts=3) as db:
        space, runs = db.space("s", value=muesli.I64), []

        async def never(tx: muesli.AsyncTransaction) -> None:
            runs.append(await tx.get(space, b"a", 0))
            # Another thread, but not in the context of this one, where a body runs.
            event_loop = asyncio.get_running_loop()
            await event_loop.run_in_executor(None, db.put, space, b"a", len(runs))
            await tx.put(space, b"a", -1)

        with pytest.raises(muesli.ConflictError):
            within(db.aio.run(never))
        assert runs == [0, 1, 2]


def test_a_task_that_is_cancelled_rolls_back(db: muesli.Database) -> None:
    space = db.space("s")

    async def waits(tx: muesli.AsyncTransaction, began: asyncio.Event) -> None:
        await tx.put(space, b"a", b"b")
        began.set()
        await asyncio.sleep(60)

    async def main() -> None:
        began = asyncio.Event()
        task = asyncio.create_task(db.aio.run(waits, began))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await db.aio.get(space, b"a") is None

    within(main())
    began = time.monotonic()
    db.close()
    assert time.monotonic() - began < 0.8, "no transaction is open that is waited for"


def test_a_transaction_within_a_body_is_refused(db: muesli.Database) -> None:
    space = db.space("s")

    async def puts(tx: muesli.AsyncTransaction) -> None:
        await db.aio.put(space, b"a", b"b")

    async def begins(tx: muesli.AsyncTransaction) -> None:
        async with db.aio.begin():
            pass

    async def commits(tx: muesli.AsyncTransaction) -> None:
        await tx.commit()

    async def main() -> None:
        for body in (puts, begins):
            with pytest.raises(muesli.MisuseError, match="use the body's own"):
                await db.aio.run(body)
        with pytest.raises(muesli.MisuseError, match="committed at the body's end"):
            await db.aio.run(commits)
        await db.aio.put(space, b"a", b"b")

    within(main())


def test_what_has_ended_says_so() -> None:
    db = muesli.open()
    space = db.space("s")

    async def main() -> None:
        begin = db.aio.begin()
        async with begin as tx:
            await tx.commit()
            with pytest.raises(muesli.MisuseError, match="already ended"):
                await tx.get(space, b"a")
            with pytest.raises(muesli.MisuseError, match="already ended"):
                await tx.commit()
            await tx.rollback()
        with pytest.raises(muesli.MisuseError, match="already begun"):
            async with begin:
                pass
        db.close()
        with pytest.raises(muesli.ClosedError):
            await db.aio.get(space, b"a")

    within(main())


def test_a_log_is_waited_for(tmp_path: Any) -> None:
    """Commits wait for the disk, so their tasks are woken from another thread."""
    with muesli.open(tmp_path / "data") as db:
        space = db.space("s", key=muesli.U32, value=muesli.U32)

        async def main() -> None:
            await asyncio.gather(*(db.aio.put(space, it, it) for it in range(50)))

        within(main())
        within(main())
        with db.snapshot() as tx:
            assert len(list(tx.scan(space))) == 50


class Congested:
    """An operation of a loop that takes no new work at first."""

    def __init__(self) -> None:
        self.polled = 0

    def poll(self) -> bool | None:
        self.polled += 1
        return None if self.polled < 5 else True

    def answer(self) -> str:
        return "answer"


def test_others_run_until_a_loop_takes_new_work() -> None:
    ran = []

    async def other() -> None:
        while True:
            ran.append("other")
            await asyncio.sleep(0)

    async def main() -> None:
        beside = asyncio.create_task(other())
        operation: Any = Congested()
        assert await _asyncio._finish(operation) == "answer"
        beside.cancel()

    within(main())
    assert len(ran) > 2


def test_procedures_are_called(procedures_db: muesli.Database) -> None:
    db = procedures_db
    space = db.space("s", key=muesli.STR)

    async def main() -> None:
        add = ("add", space, "a", space, b"a", 5)
        assert await db.aio.call(*add, answer=muesli.I64) == 5
        assert await db.aio.call(*add, answer=muesli.I64) == 10
        with pytest.raises(muesli.RefusedError):
            await db.aio.call("withdraw", space, "a", space, b"a", 11)

    within(main())
