// What go-redis does with a server: go run . HOST PORT.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	ctx    = context.Background()
	passed = 0
)

func same(seen, expected any, what string) {
	if !reflect.DeepEqual(seen, expected) {
		log.Fatalf("%s: %#v, not %#v", what, seen, expected)
	}
	passed++
}

// Ends the program where there is an error.
func must[T any](answer T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return answer
}

func account(number int) string { return fmt.Sprintf("account:%d", number%10) }

// Commands of each type.
func values(db *redis.Client) {
	same(must(db.Ping(ctx).Result()), "PONG", "PING")
	same(must(db.Set(ctx, "text", "café", 100*time.Second).Result()), "OK", "SET")
	same(must(db.Get(ctx, "text").Result()), "café", "GET")
	same(must(db.SetNX(ctx, "text", "x", 0).Result()), false, "SETNX")
	same(must(db.IncrBy(ctx, "number", 42).Result()), int64(42), "INCRBY")
	same(must(db.HSet(ctx, "hash", "a", 1, "b", 2).Result()), int64(2), "HSET")
	same(must(db.HGetAll(ctx, "hash").Result()), map[string]string{"a": "1", "b": "2"}, "HGETALL")
	same(must(db.RPush(ctx, "list", "a", "b", "c").Result()), int64(3), "RPUSH")
	same(must(db.LRange(ctx, "list", 0, -1).Result()), []string{"a", "b", "c"}, "LRANGE")
	same(must(db.SAdd(ctx, "set", "x", "y").Result()), int64(2), "SADD")
	same(len(must(db.SMembers(ctx, "set").Result())), 2, "SMEMBERS")
	pairs := []redis.Z{{Score: 2, Member: "a"}, {Score: 1.5, Member: "b"}}
	same(must(db.ZAdd(ctx, "zset", pairs...).Result()), int64(2), "ZADD")
	sorted := []redis.Z{{Score: 1.5, Member: "b"}, {Score: 2, Member: "a"}}
	same(must(db.ZRangeWithScores(ctx, "zset", 0, -1).Result()), sorted, "ZRANGE")
	answers := must(db.Pipelined(ctx, func(all redis.Pipeliner) error {
		for number := 0; number < 1000; number++ {
			all.Set(ctx, fmt.Sprintf("many:%d", number), number, 0)
		}
		return nil
	}))
	same(len(answers), 1000, "a pipeline")
	found := map[string]bool{}
	for all := db.Scan(ctx, 0, "many:*", 100).Iterator(); all.Next(ctx); {
		found[all.Val()] = true
	}
	same(len(found), 1000, "SCAN")
	err := db.Incr(ctx, "list").Err()
	same(err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"), true, "INCR of a list")
	_, err = db.Get(ctx, "nothing").Result()
	same(errors.Is(err, redis.Nil), true, "GET of nothing")
}

// Moves one from account to account; whoever is overtaken tries again.
func transfers(db *redis.Client, client int) {
	for step := 0; step < 50; step++ {
		first := client*7 + step*3
		origin, target := account(first), account(first+1+step%8)
		move := func(tx *redis.Tx) error {
			left := must(tx.Get(ctx, origin).Int())
			right := must(tx.Get(ctx, target).Int())
			_, err := tx.TxPipelined(ctx, func(all redis.Pipeliner) error {
				all.Set(ctx, origin, left-1, 0)
				all.Set(ctx, target, right+1, 0)
				return nil
			})
			return err
		}
		for err := db.Watch(ctx, move, origin, target); err != nil; {
			if !errors.Is(err, redis.TxFailedErr) {
				log.Fatal(err)
			}
			err = db.Watch(ctx, move, origin, target)
		}
	}
}

// A pop that waits, and a message of a channel.
func waits(db *redis.Client) {
	time.AfterFunc(100*time.Millisecond, func() { db.LPush(ctx, "waited", "item") })
	same(must(db.BLPop(ctx, 5*time.Second, "waited").Result()), []string{"waited", "item"}, "BLPOP")
	listener := db.Subscribe(ctx, "news")
	must(listener.Receive(ctx))
	same(must(db.Publish(ctx, "news", "hello").Result()), int64(1), "PUBLISH")
	same(must(listener.ReceiveMessage(ctx)).Payload, "hello", "a message")
	must(0, listener.Close())
}

func main() {
	for protocol := 2; protocol <= 3; protocol++ {
		address := os.Args[1] + ":" + os.Args[2]
		db := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol})
		must(db.FlushAll(ctx).Result())
		values(db)
		waits(db)
		for number := 0; number < 10; number++ {
			must(db.Set(ctx, account(number), 100, 0).Result())
		}
		var clients sync.WaitGroup
		for client := 0; client < 4; client++ {
			clients.Add(1)
			go func() {
				defer clients.Done()
				transfers(db, client)
			}()
		}
		clients.Wait()
		sum := 0
		for number := 0; number < 10; number++ {
			sum += must(strconv.Atoi(must(db.Get(ctx, account(number)).Result())))
		}
		same(sum, 1000, "the sum of all accounts")
	}
	fmt.Printf("go-redis %s: %d checks passed\n", redis.Version(), passed)
}
