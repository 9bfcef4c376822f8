"""The same on servers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import muesli
import pytest
from conftest import Server, started


def test_servers_are_used_as_an_embedded_database(server: str) -> None:
    with muesli.connect(server) as db, muesli.connect(server) as other:
        space = db.space("s", key=muesli.tuple_of(muesli.STR, muesli.U32), value=muesli.I64)

        @db.transaction
        def fill(tx: muesli.Transaction) -> int:
            for number in range(100):
                tx.put(space, ("a", number), number)
            return sum(value for _, value in tx.scan(space, prefix=("a",)))

        assert fill() == 4950
        with other.snapshot() as tx:
            seen = other.space("s", key=muesli.tuple_of(muesli.STR, muesli.U32), index=None)
            assert len(tx.get_many(seen, [("a", 1), ("a", 2)])) == 2
        with pytest.raises(muesli.ConflictError), db.begin() as tx:
            tx.put(space, ("a", 0), tx.get(space, ("a", 0), 0) + 1)
            db.put(space, ("a", 0), 10)
        assert db.get(space, ("a", 0)) == 10


def test_clients_are_judged_by_their_histories(server: str, tmp_path: Path) -> None:
    record = tmp_path / "history.jsonl"
    with muesli.connect(server, record=record) as db:
        space = db.space("s", key=muesli.U8, value=muesli.I64)

        @db.transaction
        def add(tx: muesli.Transaction, key: int) -> None:
            tx.put(space, key, tx.get(space, key, 0) + 1)

        def work(number: int) -> None:
            for step in range(20):
                add((number + step) % 3)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(db.get(space, key, 0) for key in range(3)) == 80
    assert muesli.check(record).holds


def test_tasks_use_servers(server: str) -> None:
    with muesli.connect(server) as db:
        space = db.space("s", key=muesli.U8, value=muesli.I64)

        @db.aio.transaction
        async def add(tx: muesli.AsyncTransaction, key: int) -> None:
            await tx.put(space, key, await tx.get(space, key, 0) + 1)

        async def main() -> None:
            await asyncio.gather(*(add(number % 2) for number in range(40)))
            async with db.aio.snapshot() as tx:
                assert [row async for row in tx.scan(space)] == [(0, 20), (1, 20)]

        asyncio.run(asyncio.wait_for(main(), 60))


def test_a_server_that_does_not_answer_is_unavailable(running: Server) -> None:
    with muesli.connect(running.address, give_up_after=0.5) as db:
        space = db.space("s")
        os.kill(running.process.pid, signal.SIGSTOP)
        with pytest.raises(muesli.UnavailableError, match="no answer") as raised:
            db.get(space, b"a")
        assert raised.value.retryable
        with pytest.raises(muesli.UnknownOutcomeError, match="outcome") as unknown:
            db.put(space, b"a", b"b")
        assert db.outcome(unknown.value) == "unknown"
        os.kill(running.process.pid, signal.SIGCONT)
    with pytest.raises(muesli.UnavailableError, match="cannot connect"):
        muesli.connect(running.address, protocol="two-phase-commit", within=1)


def test_a_signal_ends_a_wait(running: Server) -> None:
    with muesli.connect(running.address) as db:
        space = db.space("s")
        os.kill(running.process.pid, signal.SIGSTOP)
        interrupts = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        interrupts.start()
        with pytest.raises(KeyboardInterrupt):
            db.get(space, b"a")
        interrupts.join()
        os.kill(running.process.pid, signal.SIGCONT)
        assert db.get(space, b"a") is None


def test_a_server_without_memory_is_asked_again(program: str) -> None:
    """A refusal that may be over soon is one as after a conflict, though it is told as another."""
    with (
        started(program, "--memory-bytes", str(1 << 20)) as running,
        muesli.connect(running.address, attempts=3) as db,
    ):
        space, runs = db.space("s", key=muesli.U32), []
        db.put(space, 1, b"a" * 2_000_000)  # Now it is over its limit.
        time.sleep(0.2)

        def put(tx: muesli.Transaction) -> None:
            runs.append("thread")
            tx.put(space, 0, b"a" * 2_000_000)

        async def put_as_a_task(tx: muesli.AsyncTransaction) -> None:
            runs.append("task")
            await tx.put(space, 0, b"a" * 2_000_000)

        with pytest.raises(muesli.UnavailableError) as raised:
            db.run(put)
        assert raised.value.retryable
        with pytest.raises(muesli.UnavailableError):
            asyncio.run(asyncio.wait_for(db.aio.run(put_as_a_task), 60))
        assert runs == ["thread"] * 3 + ["task"] * 3


def test_a_signal_ends_the_wait_for_a_procedure(program: str) -> None:
    with (
        started(program, "--protocol", "granola") as running,
        muesli.connect(running.address, protocol="granola") as db,
    ):
        space = db.space("s", key=muesli.STR)
        add = ("add", space, "a", space, b"a", 5)
        assert db.call(*add, answer=muesli.I64) == 5
        os.kill(running.process.pid, signal.SIGSTOP)
        interrupts = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        interrupts.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            db.call(*add)
        assert time.monotonic() - began < 5
        interrupts.join()
        os.kill(running.process.pid, signal.SIGCONT)


def test_others_run_while_one_waits(running: Server) -> None:
    """The interpreter's lock is let go of while a thread waits for a server."""
    with muesli.connect(running.address) as db:
        space = db.space("s")
        os.kill(running.process.pid, signal.SIGSTOP)
        asks = threading.Event()

        def get() -> None:
            asks.set()
            db.get(space, b"a")

        waits = threading.Thread(target=get)
        waits.start()
        asks.wait()
        began, steps = time.monotonic(), 0
        while time.monotonic() - began < 0.5:
            time.sleep(0.01)  # Whoever has the interpreter's lock then may keep it.
            steps += 1
        assert steps > 5 and waits.is_alive(), "this thread ran while the other one waited"
        os.kill(running.process.pid, signal.SIGCONT)
        waits.join()
