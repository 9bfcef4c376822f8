#!/bin/sh
# Commands on the EPaxos of its authors (github.com/efficient/epaxos, in Go): three replicas on the
# loopback interface, and their client, whose commands are all on keys of their own. Arguments: a
# clone of their repository, `batched` (as it comes: up to 1,000 commands an instance, every 5 ms) or
# `unbatched` (each command at once), commands in flight (32), rounds of as many (1000).
set -eu
clone=$(cd "${1:?a clone of github.com/efficient/epaxos}" && pwd)
mode=${2:?batched or unbatched}
outstanding=${3:-32}
rounds=${4:-1000}
dir=$(mktemp -d "${DATA_IN:-$PWD}/epaxos-XXXXXX")
started=
trap 'kill $started 2>/dev/null || true; rm -rf "$dir"' EXIT
cp -r "$clone/src" "$dir/src"
sed -i 's/Sprintf(":%d"/Sprintf("127.0.0.1:%d"/' "$dir/src/master/master.go" "$dir/src/server/server.go"
case $mode in
batched) ;;
unbatched) # Proposals are taken in whenever they come, and not with a clock.
    sed -i 's/^const MAX_BATCH = 1000/const MAX_BATCH = 1/
        s/^\t\t\tonOffProposeChan = nil/\t\t\tif MAX_BATCH > 100 { onOffProposeChan = nil }/' \
        "$dir/src/epaxos/epaxos.go"
    ;;
*) echo "$mode: batched or unbatched" >&2 && exit 2 ;;
esac
GO111MODULE=off GOPATH=$dir go install master server client
"$dir/bin/master" -port 7187 -N 3 >/dev/null 2>&1 &
started="$started $!"
sleep 1
for replica in 0 1 2; do
    "$dir/bin/server" -port 718$((replica + 1)) -maddr 127.0.0.1 -mport 7187 -addr 127.0.0.1 -e \
        >/dev/null 2>&1 &
    started="$started $!"
done
sleep 3
timeout 300 "$dir/bin/client" -maddr 127.0.0.1 -mport 7187 -e -c 0 \
    -q $((outstanding * rounds)) -r "$rounds" | grep -E "^(Test took|Successful)"
