"""Databases, for tasks of asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from . import _native
from ._calls import Call
from ._codecs import BYTES
from ._native import Codec, ForkedError, MisuseError, Space

_K = TypeVar("_K")
_V = TypeVar("_V")
_R = TypeVar("_R")
_D = TypeVar("_D")
_P = ParamSpec("_P")

_CONGESTED_PAUSE = 0.001
"""A loop that takes no new work is asked again after so many seconds."""


def _wake(future: asyncio.Future[None]) -> None:
    """Called by the native part, on the event loop's thread."""
    if not future.done():
        future.set_result(None)


async def _finish(
    operation: _native.Operation, attempts: _native.TaskAttempts | None = None
) -> Any:
    """Waits for an operation; one that is cancelled is given up."""
    try:
        while not (done := operation.poll()):
            event_loop = asyncio.get_running_loop()
            if done is None:
                if attempts is not None:
                    attempts.check()
                await asyncio.sleep(_CONGESTED_PAUSE)
            else:
                waiting: asyncio.Future[None] = event_loop.create_future()
                operation.attach(event_loop, waiting)
                await waiting
        return operation.answer()
    except BaseException:
        with contextlib.suppress(ForkedError):
            operation.cancel()
        raise


def _roll_back(tx: _native.TaskTransaction) -> None:
    """After an exception, which goes on also in a process that was forked meanwhile."""
    with contextlib.suppress(ForkedError):
        tx.rollback()


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
        self._core.refuse_within_body()
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
            _roll_back(tx._tx)
        elif tx._tx.is_open:
            await tx._end()


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
        attempts = _native.TaskAttempts(self._core)
        try:
            while True:
                ended = await _attempt(attempts, body, *args, **kwargs)
                if not isinstance(ended, _MetConflict):
                    return ended
                await asyncio.sleep(attempts.pause(ended.error))
        finally:
            attempts.end()

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
        self._core.refuse_within_body()
        parts = [call.parts() for call in calls]
        results = await _finish(_native.Operation.invoke(self._core, parts))
        pairs = zip(calls, results, strict=True)
        return [call.answer.of_row(result) for call, result in pairs]


class _MetConflict:
    """How an attempt ended after which there is another one."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _attempt(
    attempts: _native.TaskAttempts,
    body: Callable[Concatenate[AsyncTransaction, _P], Awaitable[_R]],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _R | _MetConflict:
    begin = attempts.begin()
    try:
        native: _native.TaskTransaction = await _finish(begin, attempts)
    except Exception as error:
        if begin.met_conflict:
            return _MetConflict(error)
        raise
    try:
        answer = await body(AsyncTransaction(native, is_body=True), *args, **kwargs)
    except BaseException as error:
        has_conflict = native.has_conflict
        _roll_back(native)
        # What a body makes of a conflict is of no interest, but for what ends tasks.
        if has_conflict and isinstance(error, Exception):
            return _MetConflict(error)
        raise
    if not native.is_open:
        return answer  # The body has rolled it back.
    commit = native.commit()
    try:
        await _finish(commit)
    except Exception as error:
        if commit.met_conflict:
            return _MetConflict(error)
        raise
    return answer
