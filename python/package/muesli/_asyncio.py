"""Databases, for tasks of asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from . import _native
from ._calls import Call
from ._codecs import BYTES
from ._native import Codec, ConflictError, MisuseError, Space

_K = TypeVar("_K")
_V = TypeVar("_V")
_R = TypeVar("_R")
_D = TypeVar("_D")
_P = ParamSpec("_P")

_running: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar(
    "muesli_running", default=frozenset()
)
"""The databases of which a body runs in this context."""


def _wake(future: asyncio.Future[None]) -> None:
    """Called by the native part, on the event loop's thread."""
    if not future.done():
        future.set_result(None)


async def _finish(operation: _native.Operation) -> Any:
    """Waits for an operation; one that is cancelled is given up."""
    if not operation.poll():
        event_loop = asyncio.get_running_loop()
        try:
            while True:
                waiting: asyncio.Future[None] = event_loop.create_future()
                operation.attach(event_loop, waiting)
                await waiting
                if operation.poll():
                    break
        except BaseException:
            operation.cancel()
            raise
    return operation.answer()


class AsyncTransaction:
    """A transaction whose operations are awaited; several may be awaited side by side."""

    __slots__ = ("_tx", "_is_body")

    def __init__(self, tx: _native.TaskTransaction, *, is_body: bool) -> None:
        """Of the native part; `AsyncDatabase.begin` makes one."""
        self._tx = tx
        self._is_body = is_body

    @overload
    async def get(self, space: Space[_K, _V], key: _K) -> _V | None: ...
    @overload
    async def get(self, space: Space[_K, _V], key: _K, default: _D) -> _V | _D: ...
    async def get(self, space: Space[Any, Any], key: Any, default: Any = None) -> Any:
        """The value of a key; ``default`` where it is absent."""
        return await _finish(self._tx.get(space, key, default))

    async def get_many(self, space: Space[_K, _V], keys: Iterable[_K]) -> list[_V | None]:
        """The values of several keys, ``None`` where one is absent."""
        values: list[_V | None] = await _finish(self._tx.get_many(space, keys))
        return values

    async def put(self, space: Space[_K, _V], key: _K, value: _V) -> None:
        """Writes a key."""
        await _finish(self._tx.put(space, key, value))

    async def delete(self, space: Space[_K, Any], key: _K) -> None:
        """Deletes a key; nothing happens where it is absent."""
        await _finish(self._tx.delete(space, key))

    async def scan(
        self,
        space: Space[_K, _V],
        start: _K | None = None,
        stop: _K | None = None,
        *,
        prefix: Any = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[tuple[_K, _V]]:
        """An iterator over the rows of a range, in order."""
        scan = _native.Scan(space, start, stop, prefix, reverse, limit)
        while not scan.done:
            for row in await _finish(self._tx.page(scan)):
                yield row

    async def commit(self) -> None:
        """Commits: all that was written takes effect, or nothing."""
        if self._is_body:
            raise MisuseError("the transaction of a body is committed at the body's end: return")
        await self._end()

    async def rollback(self) -> None:
        """Rolls back: nothing of what was written takes effect."""
        self._tx.rollback()

    async def _end(self) -> None:
        await _finish(self._tx.commit())


class _Begin:
    """A transaction for an ``async with`` block."""

    __slots__ = ("_core", "_tx")

    def __init__(self, core: _native.Core) -> None:
        self._core = core
        self._tx: AsyncTransaction | None = None

    async def __aenter__(self) -> AsyncTransaction:
        if self._tx is not None:
            raise MisuseError("this transaction has already begun")
        _refuse_within_body(self._core)
        tx = await _finish(_native.Operation.begin(self._core))
        self._tx = AsyncTransaction(tx, is_body=False)
        return self._tx

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        tx = self._tx
        if tx is None:
            return
        if error is not None:
            await tx.rollback()
        elif tx._tx.is_open:
            await tx._end()


def _refuse_within_body(core: _native.Core) -> None:
    if core.number in _running.get():
        raise MisuseError(
            "a transaction's body runs in this task, and no other transaction of the same database "
            "begins within it: use the body's own, and pass it to the functions that it calls"
        )


class AsyncDatabase:
    """A database, for tasks of asyncio; `Database.aio` makes it."""

    __slots__ = ("_core",)

    def __init__(self, core: _native.Core) -> None:
        """Of the native part."""
        self._core = core

    def begin(self) -> _Begin:
        """Begins a transaction for an ``async with`` block.

        It commits unless the block ends by an exception. A conflict is raised, not tried again.
        """
        return _Begin(self._core)

    def snapshot(self) -> _Begin:
        """A transaction that only reads, for an ``async with`` block."""
        return _Begin(self._core.read_only())

    def transaction(
        self, body: Callable[Concatenate[AsyncTransaction, _P], Awaitable[_R]]
    ) -> Callable[_P, Coroutine[Any, Any, _R]]:
        """Makes an async function a transaction, which commits as it returns.

        After a conflict it is run again, so it has no other effects. An exception rolls back.
        """

        @functools.wraps(body)
        async def transaction(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            return await self.run(body, *args, **kwargs)

        return transaction

    async def run(
        self,
        body: Callable[Concatenate[AsyncTransaction, _P], Awaitable[_R]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """Runs an async function as a transaction, as `transaction` does."""
        core = self._core
        _refuse_within_body(core)
        token = _running.set(_running.get() | {core.number})
        try:
            attempts = 0
            while True:
                native = await _finish(_native.Operation.begin(core))
                tx = AsyncTransaction(native, is_body=True)
                try:
                    return await _attempt(tx, body, *args, **kwargs)
                except Exception as error:
                    has_conflict = native.has_conflict or _is_conflict_of_commit(native, error)
                    native.rollback()
                    if not has_conflict:
                        raise
                    attempts += 1
                    pause = core.retry_pause(attempts, error)
                except BaseException:
                    native.rollback()
                    raise
                await asyncio.sleep(pause)
        finally:
            _running.reset(token)

    @overload
    async def get(self, space: Space[_K, _V], key: _K) -> _V | None: ...
    @overload
    async def get(self, space: Space[_K, _V], key: _K, default: _D) -> _V | _D: ...
    async def get(self, space: Space[Any, Any], key: Any, default: Any = None) -> Any:
        """Reads a key, in a transaction of its own."""

        async def get(tx: AsyncTransaction) -> Any:
            return await tx.get(space, key, default)

        return await self.run(get)

    async def put(self, space: Space[_K, _V], key: _K, value: _V) -> None:
        """Writes a key, in a transaction of its own."""

        async def put(tx: AsyncTransaction) -> None:
            await tx.put(space, key, value)

        await self.run(put)

    async def delete(self, space: Space[_K, Any], key: _K) -> None:
        """Deletes a key, in a transaction of its own."""

        async def delete(tx: AsyncTransaction) -> None:
            await tx.delete(space, key)

        await self.run(delete)

    async def call(
        self,
        name: str,
        space: Space[_K, Any],
        key: _K,
        *arguments: Any,
        answer: Codec[Any] = BYTES,
        version: int = 1,
    ) -> Any:
        """Runs a procedure where a key lives, as a transaction of its own."""
        [result] = await self.call_all([Call(name, space, key, arguments, answer, version)])
        return result

    async def call_all(self, calls: Sequence[Call]) -> list[Any]:
        """Runs several procedures as one transaction in one round; what each answered."""
        _refuse_within_body(self._core)
        parts = [call.parts() for call in calls]
        results = await _finish(_native.Operation.invoke(self._core, parts))
        pairs = zip(calls, results, strict=True)
        return [call.answer.of_row(result) for call, result in pairs]


async def _attempt(
    tx: AsyncTransaction,
    body: Callable[Concatenate[AsyncTransaction, _P], Awaitable[_R]],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _R:
    answer = await body(tx, *args, **kwargs)
    if tx._tx.is_open:  # Or else the body has rolled it back.
        await tx._end()
    return answer


def _is_conflict_of_commit(tx: _native.TaskTransaction, error: Exception) -> bool:
    """Whether a transaction that is over met the conflict as it was to commit."""
    return not tx.is_open and isinstance(error, ConflictError) and error.retryable
