import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;

/** What Jedis does with a server, in both versions of the protocol: Main HOST PORT. */
public class Main {
  private static HostAndPort server;
  private static int passed = 0;

  private static void same(Object seen, Object expected, String what) {
    if (!Objects.equals(seen, expected)) {
      throw new AssertionError(what + ": " + seen + ", not " + expected);
    }
    passed += 1;
  }

  private static Jedis connected(RedisProtocol protocol) {
    return new Jedis(server, DefaultJedisClientConfig.builder().protocol(protocol).build());
  }

  private static String account(int number) {
    return "account:" + number % 10;
  }

  /** Commands of each type. */
  private static void values(Jedis db) {
    same(db.ping(), "PONG", "PING");
    same(db.set("text", "café", SetParams.setParams().ex(100)), "OK", "SET");
    same(db.get("text"), "café", "GET");
    same(db.set("text", "x", SetParams.setParams().nx()), null, "SET NX");
    same(db.incrBy("number", 42), 42L, "INCRBY");
    same(db.hset("hash", Map.of("a", "1", "b", "2")), 2L, "HSET");
    same(db.hgetAll("hash"), Map.of("a", "1", "b", "2"), "HGETALL");
    same(db.rpush("list", "a", "b", "c"), 3L, "RPUSH");
    same(db.lrange("list", 0, -1), List.of("a", "b", "c"), "LRANGE");
    same(db.sadd("set", "x", "y"), 2L, "SADD");
    same(db.smembers("set"), Set.of("x", "y"), "SMEMBERS");
    same(db.zadd("zset", Map.of("a", 2.0, "b", 1.5)), 2L, "ZADD");
    same(db.zrange("zset", 0, -1), List.of("b", "a"), "ZRANGE");
    same(db.zscore("zset", "b"), 1.5, "ZSCORE");
    var pipeline = db.pipelined();
    for (int number = 0; number < 1000; number++) {
      pipeline.set("many:" + number, String.valueOf(number));
    }
    same(new HashSet<>(pipeline.syncAndReturnAll()), Set.of("OK"), "a pipeline");
    var found = new HashSet<String>();
    var cursor = ScanParams.SCAN_POINTER_START;
    do {
      var page = db.scan(cursor, new ScanParams().match("many:*").count(100));
      found.addAll(page.getResult());
      cursor = page.getCursor();
    } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
    same(found.size(), 1000, "SCAN");
    try {
      db.incr("list");
      same("an answer", "an error", "INCR of a list");
    } catch (JedisDataException error) {
      same(error.getMessage().startsWith("WRONGTYPE"), true, "INCR of a list");
    }
    var bytes = new byte[256];
    for (int number = 0; number < 256; number++) {
      bytes[number] = (byte) number;
    }
    db.set("bytes".getBytes(), bytes);
    same(Arrays.equals(db.get("bytes".getBytes()), bytes), true, "bytes");
  }

  /** Moves one from account to account; whoever is overtaken tries again. */
  private static void transfers(int client, RedisProtocol protocol) {
    try (var db = connected(protocol)) {
      for (int step = 0; step < 50; step++) {
        int first = client * 7 + step * 3;
        String origin = account(first), target = account(first + 1 + step % 8);
        List<Object> done = null;
        while (done == null) {
          db.watch(origin, target);
          int left = Integer.parseInt(db.get(origin)), right = Integer.parseInt(db.get(target));
          var transaction = db.multi();
          transaction.set(origin, String.valueOf(left - 1));
          transaction.set(target, String.valueOf(right + 1));
          done = transaction.exec();
        }
      }
    }
  }

  /** A pop that waits, and a message of a channel. */
  private static void waits(Jedis db, RedisProtocol protocol) throws InterruptedException {
    var pusher = new Thread(() -> {
      try (var other = connected(protocol)) {
        Thread.sleep(100);
        other.lpush("waited", "item");
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
      }
    });
    pusher.start();
    same(db.blpop(5, "waited"), List.of("waited", "item"), "BLPOP");
    pusher.join();
    var heard = new ArrayList<String>();
    var listener = new JedisPubSub() {
      @Override
      public void onSubscribe(String channel, int count) {
        try (var other = connected(protocol)) {
          same(other.publish("news", "hello"), 1L, "PUBLISH");
        }
      }

      @Override
      public void onMessage(String channel, String message) {
        heard.add(message);
        unsubscribe();
      }
    };
    try (var other = connected(protocol)) {
      other.subscribe(listener, "news");
    }
    same(heard, List.of("hello"), "a message");
  }

  public static void main(String[] arguments) throws InterruptedException {
    server = new HostAndPort(arguments[0], Integer.parseInt(arguments[1]));
    for (var protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
      try (var db = connected(protocol)) {
        db.flushAll();
        values(db);
        waits(db, protocol);
        for (int number = 0; number < 10; number++) {
          db.set(account(number), "100");
        }
        var threads = new ArrayList<Thread>();
        for (int client = 0; client < 4; client++) {
          int number = client;
          threads.add(new Thread(() -> transfers(number, protocol)));
        }
        threads.forEach(Thread::start);
        for (var thread : threads) {
          thread.join();
        }
        int sum = 0;
        for (int number = 0; number < 10; number++) {
          sum += Integer.parseInt(db.get(account(number)));
        }
        same(sum, 1000, "the sum of all accounts");
      }
    }
    System.out.println("Jedis: " + passed + " checks passed");
  }
}
