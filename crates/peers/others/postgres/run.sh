#!/bin/sh
# Bank transfers on one PostgreSQL with its own settings (synced), serializable: 10 000 accounts, two
# read and two written, by pgbench over a Unix socket. Arguments: clients (32), seconds (10).
set -eu
clients=${1:-32}
seconds=${2:-10}
here=$(cd "$(dirname "$0")" && pwd)
bin=$(pg_config --bindir)
dir=$(mktemp -d "${DATA_IN:-$PWD}/postgres-XXXXXX")
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then # It refuses to run as root.
    chmod o+x "$dir/.."
    chown postgres "$dir"
    as() { runuser -u postgres -- "$@"; }
fi
as "$bin/initdb" -D "$dir/data" -A trust >/dev/null
as "$bin/pg_ctl" -D "$dir/data" -w -l "$dir/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$dir" start >/dev/null
trap 'as "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null; rm -rf "$dir"' EXIT
sql() { as psql -h "$dir" -q -t postgres -c "$1"; }
sql "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)"
sql "INSERT INTO accounts SELECT id, 10000 FROM generate_series(0, 9999) id"
sql "VACUUM ANALYZE accounts"
cp "$here/transfers.sql" "$dir/transfers.sql"
chmod a+r "$dir/transfers.sql"
as "$bin/pgbench" -h "$dir" -n -f "$dir/transfers.sql" -c "$clients" -j 2 -T "$seconds" \
    -M prepared --max-tries=0 --failures-detailed postgres
total=$(sql "SELECT sum(balance) FROM accounts" | tr -d ' ')
[ "$total" = 100000000 ] || { echo "the total is $total, not 100000000" >&2; exit 1; }
echo "money is conserved"
