"""Transactions a second from one Python thread, and where their time goes.

    python bench.py [SECONDS]

Each transaction reads two accounts and writes both. What Python takes alone is measured by the same
body on a transaction whose operations do nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import muesli

ACCOUNTS = 1000


class NoTransaction:
    """A transaction of which all operations do nothing, as small as Python makes it."""

    def get(self, space: object, key: int, default: int) -> int:
        """Gives the default."""
        return default

    def put(self, space: object, key: int, value: int) -> None:
        """Does nothing."""


def transfer(tx: Any, accounts: Any, source: int, target: int) -> None:
    """Moves 1 from an account to another one."""
    tx.put(accounts, source, tx.get(accounts, source, 0) - 1)
    tx.put(accounts, target, tx.get(accounts, target, 0) + 1)


def measure(seconds: float, step: Callable[[int, int], object]) -> tuple[float, float]:
    """How often a step is done in a second, and its processor time in nanoseconds.

    The latter is of this thread alone, and the same on a machine that others use as well.
    """
    count, began, busy = 0, time.perf_counter(), time.thread_time_ns()
    while (elapsed := time.perf_counter() - began) < seconds:
        for number in range(1000):
            step(number, (number + 7) % ACCOUNTS)
        count += 1000
    return count / elapsed, (time.thread_time_ns() - busy) / count


def main() -> None:
    """Measures, and prints a line for each way to run transactions."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    with muesli.open() as db:
        accounts = db.space("accounts", key=muesli.U32, value=muesli.I64, index="hash")
        raw = db.space("raw", key=muesli.BYTES, value=muesli.BYTES, index="hash")
        keys = [number.to_bytes(4, "big") for number in range(ACCOUNTS)]

        @db.transaction
        def transaction(tx: muesli.Transaction, source: int, target: int) -> None:
            transfer(tx, accounts, source, target)

        @db.transaction
        def bytes_alone(tx: muesli.Transaction, source: int, target: int) -> None:
            source_key, target_key = keys[source], keys[target]
            tx.put(raw, source_key, tx.get(raw, source_key, b"0"))
            tx.put(raw, target_key, tx.get(raw, target_key, b"0"))

        def block(source: int, target: int) -> None:
            with db.begin() as tx:
                transfer(tx, accounts, source, target)

        @db.transaction
        def empty(tx: muesli.Transaction, source: int, target: int) -> None:
            pass

        nothing = NoTransaction()
        ways: list[tuple[str, Callable[[int, int], object]]] = [
            ("@db.transaction, two keys read and written", transaction),
            ("the same, of bytes", bytes_alone),
            ("with db.begin()", block),
            ("@db.transaction, an empty body", empty),
            ("the body alone, without a database", lambda s, t: transfer(nothing, 0, s, t)),
        ]
        for name, step in ways:
            measure(seconds / 10, step)
            rate, busy = measure(seconds, step)
            print(f"{name:<44} {rate:>12,.0f} a second {busy:>8,.0f} ns of the processor each")


if __name__ == "__main__":
    main()
