"""What cannot be is an error, and never a panic or a wait without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muesli
import pytest


def test_all_exceptions_have_one_base() -> None:
    errors = [it for it in vars(muesli).values() if isinstance(it, type)]
    errors = [it for it in errors if issubclass(it, Exception)]
    assert len(errors) == 12
    assert all(issubclass(error, muesli.MuesliError) for error in errors)


def test_giant_keys_and_values_are_over_a_limit(db: muesli.Database) -> None:
    space = db.space("s")
    with pytest.raises(muesli.LimitError, match="key_bytes"):
        db.put(space, b"a" * (1 << 17), b"")
    with pytest.raises(muesli.LimitError, match="value_bytes"):
        db.put(space, b"a", b"a" * (17 << 20))
    with muesli.open(value_bytes=10) as small, pytest.raises(muesli.LimitError):
        small.put(small.space("s"), b"a", b"a" * 11)


def test_a_closed_database_says_so() -> None:
    db = muesli.open()
    space = db.space("s")
    tx = db.begin()
    db.close()
    db.close()
    for call in (
        lambda: db.get(space, b"a"),
        lambda: tx.get(space, b"a"),
        lambda: tx.commit(),
        lambda: db.space("t"),
        lambda: db.begin(),
    ):
        with pytest.raises(muesli.ClosedError):
            call()


def test_a_transaction_that_has_ended_says_so(db: muesli.Database) -> None:
    space = db.space("s")
    tx = db.begin()
    tx.put(space, b"a", b"b")
    tx.commit()
    tx.rollback()
    assert db.get(space, b"a") == b"b", "a roll-back afterwards changes nothing"
    with pytest.raises(muesli.MisuseError, match="already ended"):
        tx.commit()
    with pytest.raises(muesli.MisuseError, match="already ended"):
        tx.get(space, b"a")
    tx = db.begin()
    tx.rollback()
    with pytest.raises(muesli.MisuseError, match="rolled back"), tx:
        pass
    with pytest.raises(muesli.MisuseError, match="rolled back"):
        tx.put(space, b"a", b"c")


def test_a_transaction_that_is_forgotten_is_rolled_back(db: muesli.Database) -> None:
    space = db.space("s")
    db.begin().put(space, b"a", b"b")
    assert db.get(space, b"a") is None
    began = time.monotonic()
    db.close()
    assert time.monotonic() - began < 0.8, "no transaction is open that is waited for"


def test_a_transaction_within_a_body_is_refused(db: muesli.Database) -> None:
    space = db.space("s")

    @db.transaction
    def inner(tx: muesli.Transaction) -> None:
        tx.put(space, b"a", b"b")

    def outer(tx: muesli.Transaction, call: Any) -> None:
        call()

    for call in (inner, db.begin, lambda: db.get(space, b"a"), db.snapshot):
        with pytest.raises(muesli.MisuseError, match="use the body's own"):
            db.run(outer, call)
    inner()
    with muesli.open() as other:
        other_space = other.space("s")
        db.run(outer, lambda: other.put(other_space, b"a", b"b"))
        assert other.get(other_space, b"a") == b"b"


def test_a_body_does_not_commit_itself(db: muesli.Database) -> None:
    def commits(tx: muesli.Transaction) -> None:
        tx.commit()

    def enters(tx: muesli.Transaction) -> None:
        with tx:
            pass

    for body in (commits, enters):
        with pytest.raises(muesli.MisuseError, match="committed at the body's end"):
            db.run(body)


def test_a_body_that_keeps_its_transaction_finds_it_ended(db: muesli.Database) -> None:
    space = db.space("s")
    kept = db.run(lambda tx: tx)
    with pytest.raises(muesli.MisuseError, match="already ended"):
        kept.get(space, b"a")


def test_an_async_body_is_for_asyncio(db: muesli.Database) -> None:
    async def body(tx: muesli.Transaction) -> None: ...

    with pytest.raises(muesli.MisuseError, match="aio"):
        db.transaction(body)


def test_a_space_is_of_its_database(db: muesli.Database) -> None:
    with muesli.open() as other:
        space = other.space("s")
        with pytest.raises(muesli.MisuseError, match="another database"):
            db.get(space, b"a")
    with pytest.raises(muesli.MisuseError, match="there is no space"):
        db.space("none", index=None)
    with pytest.raises(ValueError, match="an index is"):
        db.space("none", index="tree")  # type: ignore
    with pytest.raises(TypeError):
        db.get("s", b"a")  # type: ignore
    with pytest.raises(TypeError):
        db.space("t", key=str)  # type: ignore
    hashed = db.space("hashed", index="hash")
    with db.snapshot() as tx, pytest.raises(muesli.MisuseError):
        list(tx.scan(hashed))


def test_options_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(muesli.MisuseError, match="no protocol|protocol"):
        muesli.open(protocol="none")
    with pytest.raises(ValueError, match="always"):
        muesli.open(tmp_path / "a", sync="sometimes")  # type: ignore
    with pytest.raises(TypeError):
        muesli.open(tmp_path / "a", sync=None)  # type: ignore
    with pytest.raises(muesli.MisuseError):
        muesli.open(transaction_timeout=-1)
    with pytest.raises(muesli.MisuseError):
        muesli.open(read_only=True)
    with pytest.raises(TypeError):
        muesli.open(17)  # type: ignore
    with pytest.raises(ValueError):
        muesli.connect("127.0.0.1:1", secret=b"short", within=0.1)
    with pytest.raises(muesli.UnavailableError, match="cannot connect"):
        muesli.connect("127.0.0.1:1", within=0.1)


def test_a_transaction_is_over_after_its_timeout(db: muesli.Database) -> None:
    space = db.space("s")
    with pytest.raises(muesli.TransactionTimeoutError):
        with db.timeout(0.05).begin() as tx:
            tx.put(space, b"a", b"b")
            time.sleep(0.3)
    assert db.get(space, b"a") is None


def test_a_lock_of_the_program_does_not_stop_the_database(db: muesli.Database) -> None:
    """A body runs outside of the loop's state, so it may wait for who uses the database."""
    space = db.space("s")
    lock = threading.Lock()
    inside, written = threading.Event(), threading.Event()

    def holds_lock() -> None:
        with lock:
            inside.set()
            time.sleep(0.05)
            db.put(space, b"other", b"b")
            written.set()

    def waits_for_lock(tx: muesli.Transaction) -> None:
        tx.put(space, b"a", b"b")
        thread.start()
        inside.wait()
        with lock:
            assert written.is_set()

    thread = threading.Thread(target=holds_lock)
    db.run(waits_for_lock)
    thread.join()
    assert db.get(space, b"a") == b"b"


def test_a_signal_ends_a_wait_of_the_body(db: muesli.Database) -> None:
    space = db.space("s")

    def interrupted(tx: muesli.Transaction) -> None:
        tx.put(space, b"a", b"b")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        db.run(interrupted)
    assert db.get(space, b"a") is None


def test_a_signal_ends_a_wait_of_the_package(tmp_path: Path) -> None:
    """Bodies that wait for the disk, and pause after conflicts, for most of the time."""
    with muesli.open(tmp_path / "data", attempts=1_000_000) as db:
        space = db.space("s")

        def overtaken(tx: muesli.Transaction) -> None:
            tx.put(space, b"a", tx.get(space, b"a", b"") + b"a")
            other = threading.Thread(target=db.put, args=(space, b"a", b"b"))
            other.start()
            other.join()

        interrupts = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        interrupts.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            db.run(overtaken)
        assert time.monotonic() - began < 5
        interrupts.join()
        assert db.get(space, b"a") == b"b"


def test_a_forked_process_is_told(db: muesli.Database) -> None:
    space, tx = db.space("s"), db.begin()
    tx.put(space, b"a", b"b")
    child = os.fork()
    if child == 0:
        refused = 0
        calls: list[Callable[[], object]] = [
            lambda: db.get(space, b"a"),
            lambda: tx.get(space, b"a"),
            tx.commit,
            tx.rollback,
            db.close,
        ]
        for call in calls:
            try:
                call()
            except muesli.ForkedError:
                refused += 1
        with muesli.open() as own:
            own.put(own.space("t"), b"a", b"b")
        calls.clear()
        del tx
        os._exit(0 if refused == 5 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    tx.commit()
    assert db.get(space, b"a") == b"b"


def test_a_program_that_does_not_close_ends_all_the_same(tmp_path: Path) -> None:
    record = tmp_path / "history.jsonl"
    text = (
        f"import muesli; db = muesli.open(record={str(record)!r}); "
        "db.put(db.space('s'), b'a', b'b'); tx = db.begin()"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)
    assert muesli.check(record)
