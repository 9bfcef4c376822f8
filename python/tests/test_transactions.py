"""Transactions of threads."""

from __future__ import annotations

import threading
from pathlib import Path

import muesli
import pytest


def test_a_function_is_a_transaction(any_db: muesli.Database) -> None:
    accounts = any_db.space("accounts", key=muesli.STR, value=muesli.I64)

    @any_db.transaction
    def transfer(tx: muesli.Transaction, source: str, target: str, *, amount: int) -> int:
        """Moves money."""
        left = tx.get(accounts, source, 0) - amount
        tx.put(accounts, source, left)
        tx.put(accounts, target, tx.get(accounts, target, 0) + amount)
        return left

    any_db.put(accounts, "ann", 100)
    assert transfer("ann", "bob", amount=30) == 70
    assert any_db.get(accounts, "bob") == 30
    assert any_db.get(accounts, "eve") is None
    assert any_db.get(accounts, "eve", 7) == 7
    assert transfer.__doc__ == "Moves money."
    any_db.delete(accounts, "bob")
    assert any_db.get(accounts, "bob") is None


def test_an_exception_rolls_back_and_goes_on(db: muesli.Database) -> None:
    space = db.space("s", key=muesli.STR, value=muesli.STR)

    @db.transaction
    def fails(tx: muesli.Transaction) -> None:
        tx.put(space, "a", "b")
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        fails()
    assert db.get(space, "a") is None
    with pytest.raises(ZeroDivisionError):
        with db.begin() as tx:
            tx.put(space, "a", "b")
            print(1 // 0)
    assert db.get(space, "a") is None


def test_a_body_gives_up_by_a_rollback(db: muesli.Database) -> None:
    space = db.space("s", key=muesli.STR, value=muesli.STR)

    def gives_up(tx: muesli.Transaction) -> str:
        tx.put(space, "a", "b")
        tx.rollback()
        return "given up"

    assert db.run(gives_up) == "given up"
    assert db.get(space, "a") is None


def test_a_block_commits_or_raises_the_conflict(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.STR, value=muesli.I64)
    with any_db.begin() as tx:
        tx.put(space, "a", 1)
        assert tx.get(space, "a") == 1
        assert any_db.get(space, "a") is None, "nothing is seen before the commit"
    assert not tx.is_open
    with pytest.raises(muesli.ConflictError, match="nothing was changed") as raised:
        with any_db.begin() as tx:
            tx.put(space, "a", tx.get(space, "a", 0) + 1)
            any_db.put(space, "a", 10)
    assert raised.value.retryable
    assert any_db.get(space, "a") == 10


def test_a_conflict_runs_the_body_again(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.STR, value=muesli.I64)
    runs: list[int] = []

    @any_db.transaction
    def add(tx: muesli.Transaction) -> None:
        value = tx.get(space, "a", 0)
        if not runs:
            other = threading.Thread(target=any_db.put, args=(space, "a", 10))
            other.start()
            other.join()
        runs.append(value)
        tx.put(space, "a", value + 1)

    add()
    assert runs == [0, 10]
    assert any_db.get(space, "a") == 11
    assert any_db.conflicts() == 1


def test_conflicts_without_end_are_raised() -> None:
    with muesli.open(attempts=3) as db:
        space = db.space("s", key=muesli.STR, value=muesli.I64)
        runs: list[int] = []

        def never(tx: muesli.Transaction) -> None:
            runs.append(tx.get(space, "a", 0))
            other = threading.Thread(target=db.put, args=(space, "a", len(runs)))
            other.start()
            other.join()
            tx.put(space, "a", -1)

        with pytest.raises(muesli.ConflictError):
            db.run(never)
        assert runs == [0, 1, 2]


def test_many_threads_lose_no_update(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.U8, value=muesli.I64)

    @any_db.transaction
    def add(tx: muesli.Transaction, key: int) -> None:
        tx.put(space, key, tx.get(space, key, 0) + 1)
        tx.put(space, key + 1, tx.get(space, key + 1, 0) + 1)

    def work(number: int) -> None:
        for step in range(100):
            add((number + step) % 3)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with any_db.snapshot() as tx:
        assert sum(value for _, value in tx.scan(space)) == 2 * 600


def test_a_snapshot_sees_one_moment(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.STR, value=muesli.I64)
    any_db.put(space, "a", 1)
    with any_db.snapshot() as tx:
        assert tx.get(space, "a") == 1
        any_db.put(space, "a", 2)
        any_db.put(space, "b", 2)
        assert tx.get(space, "a") == 1
        assert tx.get(space, "b") is None
        with pytest.raises(muesli.MisuseError, match="read-only"):
            tx.put(space, "a", 3)
    assert any_db.read_only().run(lambda tx: tx.get(space, "a")) == 2
    assert any_db.strict().session().run(lambda tx: tx.get(space, "b")) == 2
    assert any_db.follower_reads().get(space, "a") == 2


def test_ranges_are_read_a_page_at_a_time(any_db: muesli.Database) -> None:
    space = any_db.space("s", key=muesli.tuple_of(muesli.STR, muesli.U32), value=muesli.U32)
    rows = [(("a", number), number) for number in range(300)]
    with any_db.begin() as tx:
        for key, value in rows:
            tx.put(space, key, value)
        tx.put(space, ("b", 0), 0)
    with any_db.snapshot() as tx:
        assert list(tx.scan(space, prefix=("a",))) == rows
        assert list(tx.scan(space, prefix=("a",), reverse=True)) == rows[::-1]
        assert list(tx.scan(space, ("a", 10), ("a", 20))) == rows[10:20]
        assert list(tx.scan(space, ("a", 290), prefix=("a",))) == rows[290:]
        assert list(tx.scan(space, stop=("a", 2), reverse=True)) == rows[1::-1]
        assert list(tx.scan(space, limit=40)) == rows[:40]
        assert list(tx.scan(space, ("a", 20), ("a", 10))) == []
        assert list(tx.scan(space, limit=0)) == []
        assert tx.get_many(space, [("b", 0), ("c", 0)]) == [0, None]
        assert len(list(tx.scan(space))) == 301
        unread, begun = tx.scan(space), tx.scan(space)
        assert next(begun) == rows[0]
    for ended in (unread, begun):
        with pytest.raises(muesli.MisuseError, match="already ended"):
            next(ended)


def test_a_folder_keeps_what_was_committed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with muesli.open(folder, repositories=2) as db:
        db.put(db.space("s", key=muesli.STR), "a", b"b")
        with pytest.raises(muesli.UnavailableError):
            muesli.open(folder)
    with muesli.open(folder, sync=0.01) as db:
        assert db.spaces() == ["s"]
        assert db.get(db.space("s", key=muesli.STR, index=None), "a") == b"b"
        before, after = db.compact()
        assert before > 0 and after > 0
    with muesli.open(folder, read_only=True) as db:
        space = db.space("s", key=muesli.STR, index=None)
        assert db.get(space, "a") == b"b"
        with pytest.raises(muesli.MisuseError, match="read-only"):
            db.put(space, "a", b"c")
    with pytest.raises(muesli.MisuseError, match="repositories=2, and not 3"):
        muesli.open(folder, repositories=3)
    with pytest.raises(muesli.UnavailableError):
        muesli.open(tmp_path / "none", read_only=True)
