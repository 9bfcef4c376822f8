"""Serializable transactions over any keys: embedded, in memory or on disk, and on clusters.

The guide is ``docs/using/python.md``. A first program::

    import muesli

    with muesli.open() as db:
        accounts = db.space("accounts", key=muesli.STR, value=muesli.I64)

        @db.transaction
        def deposit(tx: muesli.Transaction, name: str, amount: int) -> int:
            balance = tx.get(accounts, name, 0) + amount
            tx.put(accounts, name, balance)
            return balance

        deposit("ann", 100)
"""

from ._asyncio import AsyncDatabase, AsyncTransaction
from ._calls import Call, some, unsigned
from ._codecs import (
    BOOL,
    BYTES,
    I8,
    I16,
    I32,
    I64,
    I128,
    JSON,
    MSGPACK,
    STR,
    U8,
    U16,
    U32,
    U64,
    U128,
    tuple_of,
)
from ._database import Database, connect, open
from ._native import (
    AnswerLostError,
    ClosedError,
    Codec,
    ConflictError,
    DataError,
    ForkedError,
    LimitError,
    MisuseError,
    MuesliError,
    RefusedError,
    Rows,
    Space,
    Transaction,
    TransactionId,
    TransactionTimeoutError,
    UnavailableError,
    UnknownOutcomeError,
    Verdict,
    check,
)

__all__ = [
    "BOOL",
    "BYTES",
    "I8",
    "I16",
    "I32",
    "I64",
    "I128",
    "JSON",
    "MSGPACK",
    "STR",
    "U8",
    "U16",
    "U32",
    "U64",
    "U128",
    "AnswerLostError",
    "AsyncDatabase",
    "AsyncTransaction",
    "Call",
    "ClosedError",
    "Codec",
    "ConflictError",
    "DataError",
    "Database",
    "ForkedError",
    "LimitError",
    "MisuseError",
    "MuesliError",
    "RefusedError",
    "Rows",
    "Space",
    "Transaction",
    "TransactionId",
    "TransactionTimeoutError",
    "UnavailableError",
    "UnknownOutcomeError",
    "Verdict",
    "check",
    "connect",
    "open",
    "some",
    "tuple_of",
    "unsigned",
]
