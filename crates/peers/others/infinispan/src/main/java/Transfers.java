import jakarta.transaction.RollbackException;
import jakarta.transaction.TransactionManager;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.infinispan.Cache;
import org.infinispan.commons.CacheException;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.transaction.LockingMode;
import org.infinispan.transaction.TransactionMode;
import org.infinispan.transaction.lookup.EmbeddedTransactionManagerLookup;
import org.infinispan.util.concurrent.IsolationLevel;

/**
 * Bank transfers on three Infinispan nodes in processes of their own, two owners a key, in memory,
 * optimistic transactions with repeatable read: 10 000 accounts, two read and two written, clients
 * in the nodes' processes with one transfer in flight each. Arguments: clients (32), seconds (10).
 */
public final class Transfers {
    private static final int NODES = 3;
    private static final int ACCOUNTS = 10_000;
    private static final int INITIAL = 10_000;
    private static final int WARM_SECONDS = 5;

    public static void main(String[] args) throws Exception {
        if (args.length == 3) {
            node(Integer.parseInt(args[0]), Integer.parseInt(args[1]), Integer.parseInt(args[2]));
            return;
        }
        int clients = args.length > 0 ? Integer.parseInt(args[0]) : 32;
        int seconds = args.length > 1 ? Integer.parseInt(args[1]) : 10;
        List<Process> nodes = new ArrayList<>();
        for (int node = 0; node < NODES; node++) {
            int share = clients / NODES + (node < clients % NODES ? 1 : 0);
            nodes.add(new ProcessBuilder("java", "-Xmx1g", "-Djava.net.preferIPv4Stack=true",
                    "-cp", System.getProperty("java.class.path"), "Transfers",
                    "" + node, "" + share, "" + seconds)
                    .redirectError(ProcessBuilder.Redirect.DISCARD).start());
        }
        long committed = 0;
        long again = 0;
        long[] latencies = new long[0];
        for (Process node : nodes) {
            String last = node == nodes.get(0) ? "total " : "result ";
            try (var out = new BufferedReader(new InputStreamReader(node.getInputStream()))) {
                for (String line; (line = out.readLine()) != null;) {
                    if (line.startsWith("result ")) {
                        long[] fields = Arrays.stream(line.substring(7).split(" "))
                                .mapToLong(Long::parseLong).toArray();
                        committed += fields[0];
                        again += fields[1];
                        int had = latencies.length;
                        latencies = Arrays.copyOf(latencies, had + fields.length - 2);
                        System.arraycopy(fields, 2, latencies, had, fields.length - 2);
                    } else if (line.startsWith("total ")) {
                        System.out.println(line);
                    }
                    if (line.startsWith(last)) {
                        break;
                    }
                }
            }
        }
        for (Process node : nodes) {
            node.destroyForcibly();
        }
        Arrays.sort(latencies);
        System.out.printf("Infinispan, 3 nodes, 2 owners, in memory: %d clients, %d transfers/s, "
                + "p50 %.2f ms, p99 %.2f ms, %.2f %% tried again%n", clients, committed / seconds,
                latencies[latencies.length / 2] / 1e3, latencies[latencies.length * 99 / 100] / 1e3,
                100.0 * again / (again + committed));
    }

    private static void node(int index, int clients, int seconds) throws Exception {
        Thread watch = new Thread(Transfers::endWithParent);
        watch.setDaemon(true);
        watch.start();
        var global = GlobalConfigurationBuilder.defaultClusteredBuilder();
        global.transport().clusterName("transfers").addProperty("configurationFile", stack(index));
        var manager = new DefaultCacheManager(global.build());
        var shape = new ConfigurationBuilder();
        shape.clustering().cacheMode(CacheMode.DIST_SYNC).hash().numOwners(2);
        shape.transaction().transactionMode(TransactionMode.TRANSACTIONAL)
                .lockingMode(LockingMode.OPTIMISTIC)
                .transactionManagerLookup(new EmbeddedTransactionManagerLookup());
        shape.locking().isolationLevel(IsolationLevel.REPEATABLE_READ);
        manager.defineConfiguration("accounts", shape.build());
        Cache<String, Integer> cache = manager.getCache("accounts");
        while (manager.getMembers().size() < NODES) {
            Thread.sleep(100);
        }
        if (index == 0) {
            for (int from = 0; from < ACCOUNTS; from += 500) {
                Map<String, Integer> some = new HashMap<>();
                for (int account = from; account < from + 500; account++) {
                    some.put(key(account), INITIAL);
                }
                cache.putAll(some);
            }
            cache.put("go", 1);
        }
        while (cache.get("go") == null) {
            Thread.sleep(100);
        }
        run(cache, index, clients, WARM_SECONDS, false);
        run(cache, index, clients, seconds, true);
        cache.put("done" + index, 1);
        for (int other = 0; other < NODES; other++) {
            while (cache.get("done" + other) == null) {
                Thread.sleep(100);
            }
        }
        if (index == 0) {
            long total = 0;
            for (int account = 0; account < ACCOUNTS; account++) {
                total += cache.get(key(account));
            }
            System.out.println("total " + total + " of " + (long) ACCOUNTS * INITIAL);
        }
        Thread.sleep(Long.MAX_VALUE); // Until whoever started it ends it.
    }

    /** Whoever started this process holds its standard input open for as long as it lives. */
    private static void endWithParent() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is ever said.
            }
        } catch (java.io.IOException closed) {
            // The same.
        }
        Runtime.getRuntime().halt(1);
    }

    private static void run(Cache<String, Integer> cache, int index, int clients, int seconds,
            boolean told) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        List<Thread> threads = new ArrayList<>();
        long[] counts = new long[2];
        StringBuilder latencies = new StringBuilder();
        for (int client = 0; client < clients; client++) {
            long seed = index * 1_000L + client;
            threads.add(new Thread(() -> {
                Random random = new Random(seed);
                StringBuilder mine = new StringBuilder();
                long committed = 0;
                long again = 0;
                while (System.nanoTime() < end) {
                    long begun = System.nanoTime();
                    while (!transfer(cache, random)) {
                        again++;
                    }
                    committed++;
                    mine.append(' ').append((System.nanoTime() - begun) / 1_000);
                }
                synchronized (counts) {
                    counts[0] += committed;
                    counts[1] += again;
                    latencies.append(mine);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (told) {
            System.out.println("result " + counts[0] + " " + counts[1] + latencies);
        }
    }

    private static boolean transfer(Cache<String, Integer> cache, Random random) {
        int from = random.nextInt(ACCOUNTS);
        int to = random.nextInt(ACCOUNTS - 1);
        to += to >= from ? 1 : 0;
        int amount = 1 + random.nextInt(100);
        TransactionManager transactions = cache.getAdvancedCache().getTransactionManager();
        try {
            transactions.begin();
            int had = cache.get(key(from));
            int has = cache.get(key(to));
            if (had < amount) {
                transactions.rollback();
                return true;
            }
            cache.put(key(from), had - amount);
            cache.put(key(to), has + amount);
            transactions.commit();
            return true;
        } catch (RollbackException | CacheException conflict) {
            try {
                if (transactions.getTransaction() != null) {
                    transactions.rollback();
                }
            } catch (Exception ended) {
                // It was rolled back already.
            }
            return false;
        } catch (Exception other) {
            throw new IllegalStateException(other);
        }
    }

    private static String key(int account) {
        return String.format("a%05d", account);
    }

    /** JGroups over TCP on the loopback interface, nodes at ports 27800 and on. */
    private static String stack(int index) throws Exception {
        var file = java.nio.file.Files.createTempFile("jgroups", ".xml");
        file.toFile().deleteOnExit();
        java.nio.file.Files.writeString(file, """
                <config xmlns="urn:org:jgroups">
                  <TCP bind_addr="127.0.0.1" bind_port="%d" port_range="0"/>
                  <RED/>
                  <TCPPING initial_hosts="127.0.0.1[27800],127.0.0.1[27801],127.0.0.1[27802]"
                           port_range="0"/>
                  <MERGE3/>
                  <FD_SOCK2 bind_addr="127.0.0.1" offset="100"/>
                  <FD_ALL3/>
                  <VERIFY_SUSPECT2/>
                  <pbcast.NAKACK2 use_mcast_xmit="false"/>
                  <UNICAST3/>
                  <pbcast.STABLE/>
                  <pbcast.GMS print_local_addr="false"/>
                  <UFC/>
                  <MFC/>
                  <FRAG4/>
                </config>
                """.formatted(27800 + index));
        return file.toString();
    }
}
