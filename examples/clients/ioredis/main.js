// What ioredis does with a server: node main.js HOST PORT.
const assert = require('node:assert');
const Redis = require('ioredis');
const { version } = require('ioredis/package.json');

const [host, port] = [process.argv[2], Number(process.argv[3])];
const accounts = Array.from({ length: 10 }, (_, number) => `account:${number}`);
let passed = 0;

function same(seen, expected, what) {
  assert.deepStrictEqual(seen, expected, what);
  passed += 1;
}

// Commands of each type.
async function values(db) {
  same(await db.ping(), 'PONG', 'PING');
  same(await db.set('text', 'café', 'EX', 100), 'OK', 'SET');
  same(await db.get('text'), 'café', 'GET');
  same(await db.set('text', 'x', 'NX'), null, 'SET NX');
  same(await db.incrby('number', 42), 42, 'INCRBY');
  same(await db.hset('hash', { a: 1, b: 2 }), 2, 'HSET');
  same(await db.hgetall('hash'), { a: '1', b: '2' }, 'HGETALL');
  same(await db.rpush('list', 'a', 'b', 'c'), 3, 'RPUSH');
  same(await db.lrange('list', 0, -1), ['a', 'b', 'c'], 'LRANGE');
  same((await db.sadd('set', 'x', 'y')), 2, 'SADD');
  same((await db.smembers('set')).sort(), ['x', 'y'], 'SMEMBERS');
  same(await db.zadd('zset', 2, 'a', 1.5, 'b'), 2, 'ZADD');
  same(await db.zrange('zset', 0, -1, 'WITHSCORES'), ['b', '1.5', 'a', '2'], 'ZRANGE');
  const pipeline = db.pipeline();
  for (let number = 0; number < 1000; number += 1) pipeline.set(`many:${number}`, number);
  same((await pipeline.exec()).every(([error, answer]) => !error && answer === 'OK'), true, 'a pipeline');
  const found = new Set();
  for await (const keys of db.scanStream({ match: 'many:*', count: 100 })) keys.forEach((key) => found.add(key));
  same(found.size, 1000, 'SCAN');
  await assert.rejects(db.incr('list'), /WRONGTYPE/);
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  await db.set('bytes', bytes);
  same(await db.getBuffer('bytes'), bytes, 'bytes');
}

// Moves one from account to account; whoever is overtaken tries again.
async function transfers(client) {
  const db = new Redis(port, host);
  for (let step = 0; step < 50; step += 1) {
    const first = (client * 7 + step * 3) % accounts.length;
    const pair = [accounts[first], accounts[(first + 1 + (step % 8)) % accounts.length]];
    for (let done = null; done === null;) {
      await db.watch(...pair);
      const [left, right] = (await db.mget(...pair)).map(Number);
      done = await db.multi().set(pair[0], left - 1).set(pair[1], right + 1).exec();
    }
  }
  db.disconnect();
}

// A pop that waits, and a message of a channel.
async function waits(db) {
  const other = db.duplicate();
  setTimeout(() => other.lpush('waited', 'item'), 100);
  same(await db.blpop('waited', 5), ['waited', 'item'], 'BLPOP');
  const listener = db.duplicate();
  await listener.subscribe('news');
  const message = new Promise((resolve) => { listener.on('message', (channel, text) => resolve([channel, text])); });
  same(await db.publish('news', 'hello'), 1, 'PUBLISH');
  same(await message, ['news', 'hello'], 'a message');
  other.disconnect();
  listener.disconnect();
}

async function main() {
  const db = new Redis(port, host);
  await db.flushall();
  await values(db);
  await waits(db);
  await db.mset(accounts.flatMap((account) => [account, 100]));
  await Promise.all([0, 1, 2, 3].map(transfers));
  const sum = (await db.mget(...accounts)).map(Number).reduce((all, one) => all + one);
  same(sum, 1000, 'the sum of all accounts');
  db.disconnect();
  console.log(`ioredis ${version}: ${passed} checks passed`);
}

main();
