"""Databases, for threads."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, TypedDict, TypeVar, overload

from . import _native
from ._asyncio import AsyncDatabase
from ._calls import Call
from ._codecs import BYTES
from ._native import Codec, MisuseError, Space, Transaction, TransactionId

_K = TypeVar("_K")
_V = TypeVar("_V")
_R = TypeVar("_R")
_D = TypeVar("_D")
_P = ParamSpec("_P")

Index = Literal["ordered", "hash"]
"""How the keys of a space are found: in order, or by a hash, without ranges."""


class Database:
    """A database: embedded in this process, or a connection to a cluster.

    It may be used by any number of threads. Handles that are made of it (``read_only`` and so on)
    share the database, and all of them are closed together.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _native.Core) -> None:
        """Of the native part; programs call `open` or `connect`."""
        self._core = core

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the database.

        Open transactions may end for a second more. What was recorded is written then.
        """
        self._core.close()

    @overload
    def space(self, name: str, *, index: Index | None = "ordered") -> Space[bytes, bytes]: ...
    @overload
    def space(
        self, name: str, *, key: Codec[_K], index: Index | None = "ordered"
    ) -> Space[_K, bytes]: ...
    @overload
    def space(
        self, name: str, *, value: Codec[_V], index: Index | None = "ordered"
    ) -> Space[bytes, _V]: ...
    @overload
    def space(
        self, name: str, *, key: Codec[_K], value: Codec[_V], index: Index | None = "ordered"
    ) -> Space[_K, _V]: ...
    def space(
        self,
        name: str,
        *,
        key: Codec[Any] = BYTES,
        value: Codec[Any] = BYTES,
        index: Index | None = "ordered",
    ) -> Space[Any, Any]:
        """The space of this name, whose keys and values are stored by these codecs.

        It is made if there is none, unless ``index`` is ``None``.
        """
        return self._core.space(name, key, value, index)

    def spaces(self) -> list[str]:
        """The names of all spaces."""
        return self._core.spaces()

    def transaction(
        self, body: Callable[Concatenate[Transaction, _P], _R]
    ) -> Callable[_P, _R]:
        """Makes a function a transaction: it is given one, which commits as it returns.

        After a conflict it is run again, so it has no other effects. An exception rolls back.
        """
        if inspect.iscoroutinefunction(body):
            raise MisuseError("an async body is one of asyncio: use `db.aio.transaction`")
        run = self._core.run

        @functools.wraps(body)
        def transaction(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            answer: _R = run(body, args, kwargs)
            return answer

        return transaction

    def run(
        self, body: Callable[Concatenate[Transaction, _P], _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        """Runs a function as a transaction, as `transaction` does."""
        return self.transaction(body)(*args, **kwargs)

    def begin(self) -> Transaction:
        """Begins a transaction for a ``with`` block, which commits unless it ends by an exception.

        A conflict is raised, and not tried again.
        """
        return self._core.begin()

    @overload
    def get(self, space: Space[_K, _V], key: _K) -> _V | None: ...
    @overload
    def get(self, space: Space[_K, _V], key: _K, default: _D) -> _V | _D: ...
    def get(self, space: Space[Any, Any], key: Any, default: Any = None) -> Any:
        """Reads a key, in a transaction of its own."""
        return self._core.run(_get, (space, key, default), None)

    def put(self, space: Space[_K, _V], key: _K, value: _V) -> None:
        """Writes a key, in a transaction of its own."""
        self._core.run(_put, (space, key, value), None)

    def delete(self, space: Space[_K, Any], key: _K) -> None:
        """Deletes a key, in a transaction of its own."""
        self._core.run(_delete, (space, key), None)

    @overload
    def call(
        self, name: str, space: Space[_K, Any], key: _K, *arguments: Any, version: int = 1
    ) -> bytes: ...
    @overload
    def call(
        self,
        name: str,
        space: Space[_K, Any],
        key: _K,
        *arguments: Any,
        answer: Codec[_R],
        version: int = 1,
    ) -> _R: ...
    def call(
        self,
        name: str,
        space: Space[Any, Any],
        key: Any,
        *arguments: Any,
        answer: Codec[Any] = BYTES,
        version: int = 1,
    ) -> Any:
        """Runs a procedure where a key lives, as a transaction of its own."""
        [result] = self.call_all([Call(name, space, key, arguments, answer, version)])
        return result

    def call_all(self, calls: Sequence[Call]) -> list[Any]:
        """Runs several procedures as one transaction in one round; what each answered."""
        results = self._core.invoke([call.parts() for call in calls])
        return [_answer(call, result) for call, result in zip(calls, results, strict=True)]

    def read_only(self) -> Database:
        """The same database, whose transactions only read: they never meet a conflict."""
        return Database(self._core.read_only())

    def snapshot(self) -> Transaction:
        """A transaction that only reads, for a ``with`` block: it sees one moment throughout."""
        return self._core.read_only().begin()

    def strict(self) -> Database:
        """The same database, whose transactions are strictly serializable."""
        return Database(self._core.strict())

    def at_most_stale(self, seconds: float) -> Database:
        """The same database, whose transactions only read, and may see it as it was so long ago."""
        return Database(self._core.at_most_stale(seconds))

    def follower_reads(self) -> Database:
        """The same database, whose readers take the nearest copy."""
        return Database(self._core.follower_reads())

    def session(self) -> Database:
        """The same database in a session of its own, as histories tell them apart."""
        return Database(self._core.session())

    def timeout(self, seconds: float) -> Database:
        """The same database, whose transactions may be open for so long."""
        return Database(self._core.timeout(seconds))

    @property
    def aio(self) -> AsyncDatabase:
        """The same database for tasks of asyncio."""
        return AsyncDatabase(self._core)

    def outcome(
        self, transaction: TransactionId | _native.UnknownOutcomeError
    ) -> Literal["committed", "aborted", "unknown"]:
        """What has become of a transaction whose outcome was unknown."""
        if isinstance(transaction, _native.UnknownOutcomeError):
            transaction = transaction.transaction
        return self._core.outcome(transaction)

    def conflicts(self) -> int:
        """How many attempts of bodies met a conflict so far, and were tried again or given up."""
        return self._core.conflicts()

    def compact(self) -> tuple[int, int]:
        """Makes the files of a database in a folder as short as they can be.

        Gives their bytes before and after.
        """
        return self._core.compact()


def _get(tx: Transaction, space: Space[Any, Any], key: Any, default: Any) -> Any:
    return tx.get(space, key, default)


def _put(tx: Transaction, space: Space[Any, Any], key: Any, value: Any) -> None:
    tx.put(space, key, value)


def _delete(tx: Transaction, space: Space[Any, Any], key: Any) -> None:
    tx.delete(space, key)


def _answer(call: Call, result: bytes) -> Any:
    return call.answer.of_row(result)


class _Common(TypedDict):
    protocol: str | None
    record: str | os.PathLike[str] | None
    transaction_timeout: float
    attempts: int
    key_bytes: int | None
    value_bytes: int | None
    transaction_bytes: int | None


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    sync: Literal["always", "never"] | float = "always",
    read_only: bool = False,
    repositories: int | None = None,
    replicas: int | None = None,
    loops: int | None = None,
    protocol: str | None = None,
    record: str | os.PathLike[str] | None = None,
    transaction_timeout: float = 60.0,
    attempts: int = 100,
    key_bytes: int | None = None,
    value_bytes: int | None = None,
    transaction_bytes: int | None = None,
) -> Database:
    """Opens a database in this process: in memory, or in the folder ``path``, which is made.

    ``sync`` says when commits are on the disk: ``"always"`` before they are answered, so many
    seconds afterwards, or ``"never"``, as the system pleases. ``record`` is a file for the history
    of all transactions, which `check` judges. The limits are in bytes.
    """
    common = _Common(
        protocol=protocol,
        record=record,
        transaction_timeout=transaction_timeout,
        attempts=attempts,
        key_bytes=key_bytes,
        value_bytes=value_bytes,
        transaction_bytes=transaction_bytes,
    )
    shape = (repositories, replicas, loops)
    return Database(_native.open_database(path, shape, sync, read_only, common))


def connect(
    *addresses: str,
    secret: bytes | Path | None = None,
    within: float = 5.0,
    give_up_after: float = 10.0,
    protocol: str | None = None,
    record: str | os.PathLike[str] | None = None,
    transaction_timeout: float = 60.0,
    attempts: int = 100,
    key_bytes: int | None = None,
    value_bytes: int | None = None,
    transaction_bytes: int | None = None,
) -> Database:
    """Connects to a cluster by the addresses (``host:port``) of some of its servers.

    ``secret`` is the cluster's secret, or the path of its file. ``within`` says for how many
    seconds servers are looked for, and ``give_up_after`` how long an operation waits.
    """
    common = _Common(
        protocol=protocol,
        record=record,
        transaction_timeout=transaction_timeout,
        attempts=attempts,
        key_bytes=key_bytes,
        value_bytes=value_bytes,
        transaction_bytes=transaction_bytes,
    )
    if isinstance(secret, Path):
        secret = secret.read_bytes().strip()
    core = _native.connect_database(list(addresses), secret, within, give_up_after, common)
    return Database(core)


def _close_all() -> None:
    """Closes what a program that ends has left open, so that its histories are written."""
    failed: Exception | None = None
    for core in _native.opened():
        try:
            core.close()
        except Exception as error:
            failed = failed or error
    _native.end_waking()
    if failed is not None:
        raise failed


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.note_fork)
