"""Databases that fail or end while they are used, forks, and programs that end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import muesli
from muesli import _native


def run(text: str, *arguments: object) -> str:
    """Runs a program, which is not to wait without end; what it prints."""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    ran = subprocess.run(command, check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    return ran.stdout


FAILING_LOG = """
import asyncio, resource, sys, muesli

async def main() -> None:
    async def put(number: int) -> None:
        while True:
            await db.aio.put(space, number, b"a" * 10_000)
    await asyncio.gather(*map(put, range(20)), return_exceptions=True)
    try:
        await put(0)
    except muesli.UnavailableError as error:
        print(error)

db = muesli.open(sys.argv[1])
space = db.space("s", key=muesli.U32)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
asyncio.run(asyncio.wait_for(main(), 20))
"""


def test_tasks_are_told_that_the_log_has_failed(tmp_path: Path) -> None:
    """The loop ends while they wait for their commits, and wakes nobody."""
    assert "File too large" in run(FAILING_LOG, tmp_path)


def test_operations_that_are_forgotten_leave_nothing_open(tmp_path: Path) -> None:
    db = muesli.open(tmp_path / "data")
    space = db.space("s")
    for forgotten in range(4):
        begin = _native.Operation.begin(db._core)
        assert begin.poll()
        if forgotten > 0:
            tx = begin.answer()
            put = tx.put(space, b"a", b"b")
            if forgotten > 1:
                assert put.poll()
                commit = tx.commit()
                if forgotten > 2:
                    commit.poll()  # It waits for the disk.
                del commit
            del put, tx
        del begin
    began = time.monotonic()
    db.close()
    assert time.monotonic() - began < 0.8, "no transaction is open that is waited for"


FORKED_IN_A_BODY = """
import asyncio, os, sys, muesli

def refused(call) -> None:
    try:
        call()
    except muesli.ForkedError:
        return
    os._exit(1)

def body(tx: muesli.Transaction) -> None:
    tx.put(space, b"a", b"b")
    if os.fork() == 0:
        refused(lambda: tx.get(space, b"a"))
        sys.exit(7)
    children.append(os.wait()[1])

def block() -> None:
    with db.begin() as tx:
        body(tx)

async def task(tx: muesli.AsyncTransaction) -> None:
    await tx.put(space, b"a", b"b")
    kept = tx._tx.put(space, b"a", b"c")
    if os.fork() == 0:
        refused(lambda: tx._tx.get(space, b"a", None))
        refused(tx._tx.commit)
        refused(kept.poll)
        refused(kept.cancel)
        del kept
        sys.exit(7)
    kept.cancel()
    children.append(os.wait()[1])

async def task_block() -> None:
    async with db.aio.begin() as tx:
        await task(tx)

db = muesli.open()
space, children = db.space("s"), []
db.run(body)
block()
asyncio.run(db.aio.run(task))
asyncio.run(task_block())
assert db.get(space, b"a") == b"b"
print(*map(os.waitstatus_to_exitcode, children))
"""


def test_a_process_that_is_forked_in_a_body_ends_as_it_pleases() -> None:
    assert run(FORKED_IN_A_BODY).split() == ["7"] * 4


DERIVED = """
import sys, muesli
db = muesli.open(record=sys.argv[1]).strict()
db.put(db.space("s"), b"a", b"b")
"""


def test_a_handle_that_was_made_of_another_one_is_closed_at_the_end(tmp_path: Path) -> None:
    record = tmp_path / "history.jsonl"
    run(DERIVED, record)
    assert muesli.check(record)


NOT_WRITTEN = """
import sys, muesli
paths = [sys.argv[1], sys.argv[2], sys.argv[1]]
dbs = [muesli.open(record=path) for path in paths]
for db in dbs:
    db.put(db.space("s"), b"a", b"b")
"""


def test_one_that_cannot_be_closed_keeps_no_other_from_it(tmp_path: Path) -> None:
    record = tmp_path / "history.jsonl"
    run(NOT_WRITTEN, tmp_path / "none" / "history.jsonl", record)
    assert muesli.check(record)
