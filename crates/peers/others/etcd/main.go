// Bank transfers on a cluster of three etcd members, whose logs are synced unless said otherwise, as `muesli-peers redis` makes
// them on Redis: 10 000 accounts, two read and two written by compare-and-swap, every client with
// one transfer in flight. `go run . [clients] [seconds] [unsynced]`; or `go run . member FLAGS…`, etcd itself.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"
)

const (
	accounts = 10_000
	initial  = 10_000
	members  = 3
	ports    = 23790
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "member" {
		etcdmain.Main(append([]string{"etcd"}, os.Args[2:]...))
		return
	}
	clients, seconds := argument(1, 32), argument(2, 10)
	dir, err := os.MkdirTemp(".", "data-")
	must(err)
	defer os.RemoveAll(dir)
	stop := start(dir, len(os.Args) > 3 && os.Args[3] == "unsynced")
	defer stop()
	load()
	report(run(clients, time.Duration(seconds)*time.Second), clients, seconds)
	check()
}

func argument(at, otherwise int) int {
	if len(os.Args) <= at {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[at])
	must(err)
	return value
}

// start starts the members, and returns what ends them.
func start(dir string, unsynced bool) func() {
	var cluster []string
	for m := range members {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.0.0.1:%d", m, ports+10+m))
	}
	var running []*exec.Cmd
	for m := range members {
		client := fmt.Sprintf("http://127.0.0.1:%d", ports+m)
		peer := fmt.Sprintf("http://127.0.0.1:%d", ports+10+m)
		member := exec.Command(os.Args[0], "member", "--name", fmt.Sprintf("m%d", m),
			"--data-dir", filepath.Join(dir, strconv.Itoa(m)), "--log-level", "error",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","),
			fmt.Sprintf("--unsafe-no-fsync=%t", unsynced))
		member.Stderr = os.Stderr
		must(member.Start())
		running = append(running, member)
	}
	return func() {
		for _, member := range running {
			_ = member.Process.Kill()
			_ = member.Wait()
		}
	}
}

func connect() *clientv3.Client {
	var endpoints []string
	for m := range members {
		endpoints = append(endpoints, fmt.Sprintf("127.0.0.1:%d", ports+m))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 20 * time.Second, Logger: zap.NewNop(),
	})
	must(err)
	return client
}

func key(account int) string { return fmt.Sprintf("a%05d", account) }

func load() {
	client := connect()
	defer client.Close()
	for from := 0; from < accounts; from += 100 {
		var puts []clientv3.Op
		for account := from; account < from+100; account++ {
			puts = append(puts, clientv3.OpPut(key(account), strconv.Itoa(initial)))
		}
		for try := 0; ; try++ {
			_, err := client.Txn(context.Background()).Then(puts...).Commit()
			if err == nil {
				break
			}
			if try == 50 {
				must(err)
			}
			time.Sleep(200 * time.Millisecond) // The members are still electing a leader.
		}
	}
}

type result struct {
	committed, aborted int
	latencies          []time.Duration
}

func run(clients int, lasts time.Duration) result {
	var all result
	var mutex sync.Mutex
	var group sync.WaitGroup
	end := time.Now().Add(lasts)
	for c := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			client := connect()
			defer client.Close()
			random := rand.New(rand.NewSource(int64(c) + 1))
			var mine result
			for time.Now().Before(end) {
				begun := time.Now()
				for !transfer(client, random, &mine) {
					mine.aborted++
				}
				mine.committed++
				mine.latencies = append(mine.latencies, time.Since(begun))
			}
			mutex.Lock()
			defer mutex.Unlock()
			all.committed += mine.committed
			all.aborted += mine.aborted
			all.latencies = append(all.latencies, mine.latencies...)
		}()
	}
	group.Wait()
	return all
}

// transfer reads two accounts in one transaction, and writes both if neither has changed.
func transfer(client *clientv3.Client, random *rand.Rand, mine *result) bool {
	from, to := random.Intn(accounts), random.Intn(accounts-1)
	if to >= from {
		to++
	}
	amount := 1 + random.Intn(100)
	ctx := context.Background()
	read, err := client.Txn(ctx).Then(clientv3.OpGet(key(from)), clientv3.OpGet(key(to))).Commit()
	must(err)
	a, b := read.Responses[0].GetResponseRange().Kvs[0], read.Responses[1].GetResponseRange().Kvs[0]
	had, has := number(a.Value), number(b.Value)
	if had < amount {
		return true // Rolled back.
	}
	written, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key(from)), "=", a.ModRevision),
			clientv3.Compare(clientv3.ModRevision(key(to)), "=", b.ModRevision)).
		Then(clientv3.OpPut(key(from), strconv.Itoa(had-amount)),
			clientv3.OpPut(key(to), strconv.Itoa(has+amount))).Commit()
	must(err)
	return written.Succeeded
}

func number(bytes []byte) int {
	value, err := strconv.Atoi(string(bytes))
	must(err)
	return value
}

func report(all result, clients, seconds int) {
	sort.Slice(all.latencies, func(a, b int) bool { return all.latencies[a] < all.latencies[b] })
	at := func(share float64) time.Duration {
		return all.latencies[int(share*float64(len(all.latencies)-1))]
	}
	fmt.Printf("etcd, 3 members, synced: %d clients, %.0f transfers/s, p50 %v, p99 %v, %.2f %% tried again\n",
		clients, float64(all.committed)/float64(seconds), at(0.5), at(0.99),
		100*float64(all.aborted)/float64(all.aborted+all.committed))
}

// check adds up what all accounts hold.
func check() {
	client := connect()
	defer client.Close()
	all, err := client.Get(context.Background(), "a", clientv3.WithPrefix())
	must(err)
	total := 0
	for _, pair := range all.Kvs {
		total += number(pair.Value)
	}
	if total != accounts*initial {
		panic(fmt.Sprintf("the total is %d, not %d", total, accounts*initial))
	}
	fmt.Println("money is conserved")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
