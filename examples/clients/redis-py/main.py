"""What redis-py does with a server, from threads and in asyncio: python main.py HOST PORT."""

import asyncio
import sys
import threading

import redis
import redis.asyncio

HOST, PORT = sys.argv[1], int(sys.argv[2])
ACCOUNTS = [f"account:{number}" for number in range(10)]
passed = 0


def same(seen, expected, what):
    """Counts a check, or ends the program."""
    global passed
    if seen != expected:
        sys.exit(f"{what}: {seen!r}, not {expected!r}")
    passed += 1


def values(db):
    """Commands of each type, and their answers in Python's types."""
    same(db.ping(), True, "PING")
    same(db.set("text", "café", ex=100), True, "SET")
    same((db.get("text"), 90 < db.ttl("text") <= 100), ("café", True), "GET and TTL")
    same(db.set("text", "x", nx=True), None, "SET NX")
    same((db.incrby("number", 40), db.incr("number", 2)), (40, 42), "INCRBY")
    same(db.hset("hash", mapping={"a": 1, "b": 2}), 2, "HSET")
    same(db.hgetall("hash"), {"a": "1", "b": "2"}, "HGETALL")
    same(db.rpush("list", "a", "b", "c"), 3, "RPUSH")
    same((db.lrange("list", 0, -1), db.lpop("list")), (["a", "b", "c"], "a"), "LRANGE and LPOP")
    same((db.sadd("set", "x", "y"), db.smembers("set")), (2, {"x", "y"}), "SADD and SMEMBERS")
    same(db.zadd("zset", {"a": 2, "b": 1.5}), 2, "ZADD")
    scored = [tuple(pair) for pair in db.zrange("zset", 0, -1, withscores=True)]
    same(scored, [("b", 1.5), ("a", 2.0)], "ZRANGE")
    same(db.mget("text", "nothing"), ["café", None], "MGET")
    pipeline = db.pipeline(transaction=False)
    for number in range(1000):
        pipeline.set(f"many:{number}", number)
    same(pipeline.execute(), [True] * 1000, "a pipeline")
    same(len(set(db.scan_iter("many:*", count=100))), 1000, "SCAN")
    try:
        db.incr("list")
        same("an answer", "an error", "INCR of a list")
    except redis.ResponseError as error:
        same("wrong kind of value" in str(error), True, "INCR of a list")


def transfer(db, origin, target):
    """Moves one from an account to another, tried until nobody came in between."""

    def move(pipeline):
        left, right = int(pipeline.get(origin)), int(pipeline.get(target))
        pipeline.multi()
        pipeline.set(origin, left - 1).set(target, right + 1)

    db.transaction(move, origin, target)


def transfers(number):
    db = redis.Redis(HOST, PORT, decode_responses=True)
    for step in range(50):
        first = (number * 7 + step * 3) % len(ACCOUNTS)
        transfer(db, ACCOUNTS[first], ACCOUNTS[(first + 1 + step % 8) % len(ACCOUNTS)])


def waits(db):
    """A pop that waits, and a message of a channel, each from another connection."""
    other = redis.Redis(HOST, PORT, decode_responses=True)
    timer = threading.Timer(0.1, lambda: other.lpush("waited", "item"))
    timer.start()
    same(tuple(db.blpop("waited", timeout=5)), ("waited", "item"), "BLPOP")
    listener = other.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("news")
    listener.get_message(timeout=1)
    same(db.publish("news", "hello"), 1, "PUBLISH")
    message = None
    while message is None:
        message = listener.get_message(timeout=5)
    same(message["data"], "hello", "a message")
    listener.close()


async def in_asyncio():
    """The same transfers as tasks of one thread."""
    db = redis.asyncio.Redis(host=HOST, port=PORT, decode_responses=True)

    async def transfers_of(number):
        for step in range(50):
            first = (number * 7 + step * 3) % len(ACCOUNTS)
            origin, target = ACCOUNTS[first], ACCOUNTS[(first + 1 + step % 8) % len(ACCOUNTS)]
            async with db.pipeline() as pipeline:
                while True:
                    try:
                        await pipeline.watch(origin, target)
                        left = int(await pipeline.get(origin))
                        right = int(await pipeline.get(target))
                        pipeline.multi()
                        pipeline.set(origin, left - 1).set(target, right + 1)
                        await pipeline.execute()
                        break
                    except redis.WatchError:
                        continue

    await asyncio.gather(*(transfers_of(number) for number in range(4)))
    same(sum(map(int, await db.mget(ACCOUNTS))), 1000, "the sum of all accounts, in asyncio")
    await db.aclose()


def main():
    for protocol in (2, 3):
        db = redis.Redis(HOST, PORT, decode_responses=True, protocol=protocol)
        db.flushall()
        values(db)
        waits(db)
        db.mset({account: 100 for account in ACCOUNTS})
        threads = [threading.Thread(target=transfers, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same(sum(map(int, db.mget(ACCOUNTS))), 1000, "the sum of all accounts")
    asyncio.run(in_asyncio())
    raw = redis.Redis(HOST, PORT)
    raw.set(b"\x00\xff", bytes(range(256)))
    same(raw.get(b"\x00\xff"), bytes(range(256)), "bytes")
    print(f"redis-py {redis.__version__}: {passed} checks passed")


main()
