// What npm's redis does with a server, in both versions of the protocol: node main.js HOST PORT.
const assert = require('node:assert');
const { createClient, WatchError } = require('redis');
const { version } = require('redis/package.json');

const [host, port] = [process.argv[2], Number(process.argv[3])];
const accounts = Array.from({ length: 10 }, (_, number) => `account:${number}`);
let passed = 0;

function same(seen, expected, what) {
  assert.deepStrictEqual(seen, expected, what);
  passed += 1;
}

async function connected(RESP) {
  return createClient({ socket: { host, port }, RESP }).connect();
}

// Commands of each type.
async function values(db) {
  same(await db.ping(), 'PONG', 'PING');
  same(await db.set('text', 'café', { EX: 100 }), 'OK', 'SET');
  same(await db.get('text'), 'café', 'GET');
  same(await db.set('text', 'x', { NX: true }), null, 'SET NX');
  same(await db.incrBy('number', 42), 42, 'INCRBY');
  same(await db.hSet('hash', { a: 1, b: 2 }), 2, 'HSET');
  same({ ...(await db.hGetAll('hash')) }, { a: '1', b: '2' }, 'HGETALL');
  same(await db.rPush('list', ['a', 'b', 'c']), 3, 'RPUSH');
  same(await db.lRange('list', 0, -1), ['a', 'b', 'c'], 'LRANGE');
  same(await db.sAdd('set', ['x', 'y']), 2, 'SADD');
  same([...(await db.sMembers('set'))].sort(), ['x', 'y'], 'SMEMBERS');
  same(await db.zAdd('zset', [{ score: 2, value: 'a' }, { score: 1.5, value: 'b' }]), 2, 'ZADD');
  const scored = (await db.zRangeWithScores('zset', 0, -1)).map(({ score, value }) => [score, value]);
  same(scored, [[1.5, 'b'], [2, 'a']], 'ZRANGE');
  const all = Array.from({ length: 1000 }, (_, number) => db.set(`many:${number}`, String(number)));
  same((await Promise.all(all)).every((answer) => answer === 'OK'), true, 'a pipeline');
  const found = new Set();
  for await (const keys of db.scanIterator({ MATCH: 'many:*', COUNT: 100 })) keys.forEach((key) => found.add(key));
  same(found.size, 1000, 'SCAN');
  await assert.rejects(db.incr('list'), /WRONGTYPE/);
}

// Moves one from account to account; whoever is overtaken tries again.
async function transfers(client, RESP) {
  const db = await connected(RESP);
  for (let step = 0; step < 50; step += 1) {
    const first = (client * 7 + step * 3) % accounts.length;
    const pair = [accounts[first], accounts[(first + 1 + (step % 8)) % accounts.length]];
    for (let done = false; !done;) {
      await db.watch(pair);
      const [left, right] = (await db.mGet(pair)).map(Number);
      try {
        await db.multi().set(pair[0], String(left - 1)).set(pair[1], String(right + 1)).exec();
        done = true;
      } catch (error) {
        if (!(error instanceof WatchError)) throw error;
      }
    }
  }
  db.destroy();
}

// A pop that waits, and a message of a channel.
async function waits(db, RESP) {
  const [other, listener] = [await connected(RESP), await connected(RESP)];
  setTimeout(() => other.lPush('waited', 'item'), 100);
  same({ ...(await db.blPop('waited', 5)) }, { key: 'waited', element: 'item' }, 'BLPOP');
  let heard;
  const message = new Promise((resolve) => { heard = resolve; });
  await listener.subscribe('news', (text, channel) => heard([channel, text]));
  same(await db.publish('news', 'hello'), 1, 'PUBLISH');
  same(await message, ['news', 'hello'], 'a message');
  other.destroy();
  listener.destroy();
}

async function main() {
  for (const RESP of [2, 3]) {
    const db = await connected(RESP);
    await db.flushAll();
    await values(db);
    await waits(db, RESP);
    await db.mSet(accounts.map((account) => [account, '100']));
    await Promise.all([0, 1, 2, 3].map((client) => transfers(client, RESP)));
    const sum = (await db.mGet(accounts)).map(Number).reduce((all, one) => all + one);
    same(sum, 1000, 'the sum of all accounts');
    db.destroy();
  }
  console.log(`redis of npm ${version}: ${passed} checks passed`);
}

main();
