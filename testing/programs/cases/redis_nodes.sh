# shellcheck shell=bash
declare_case redis_replication 40
declare_case redis_cluster 60 among

# redis_node NAME PORT OPTION...: a redis-server, started by `$start`; nothing of it on disk but what replication needs.
redis_node() {
    local name=$1 port=$2
    shift 2
    mkdir -p "$DIR/$name"
    "${start:-serve}" redis-server --bind 127.0.0.1 --port "$port" --dir "$DIR/$name" --save '' --appendonly no \
        --enable-debug-command local --logfile "$DIR/$name.log" "$@"
    await_port "$port"
}

# at PORT COMMAND...: asks a node as a stranger, so that what is counted is the nodes' own.
at() {
    redis-cli -p "$@"
}

is_linked() { at "$1" INFO replication | tr -d '\r' | grep -qx master_link_status:up; }

# Where a node is in the stream of changes. (WAIT asks about what its own client has written, and that has written nothing.)
offset() { at "$1" INFO replication | tr -d '\r' | sed -n "s/^$2://p"; }
has_caught_up() { [ "$(offset "$replica" slave_repl_offset)" = "$(offset "$primary" master_repl_offset)" ]; }

has_all() {
    await has_caught_up
    local wanted got
    wanted=$(at "$primary" DEBUG DIGEST) got=$(at "$replica" DEBUG DIGEST)
    [ "$wanted" = "$got" ] || fail "the replica has other keys $1"
}

# A replica takes all keys, then what changes; again after its connection was cut, and after it was killed. The whole goes by a child of fork.
case_redis_replication() {
    need redis-server redis-cli redis-benchmark
    primary=$(port) replica=$(port)
    redis_node primary "$primary" --repl-diskless-sync yes --repl-diskless-sync-delay 0 --repl-backlog-size 64mb
    at "$primary" DEBUG POPULATE 20000 key 1000 >/dev/null
    start=serve_client redis_node replica "$replica" --replicaof "127.0.0.1 $primary"
    local process=$server
    await is_linked "$replica"
    has_all "after the first synchronisation"

    # The stream, while the replica asks for nothing else.
    redis-benchmark -p "$primary" -q -n 8000 -c 10 -r 10000 -d 500 -t set,incr,lpush >/dev/null
    has_all "after the stream"

    # Cut in the middle of it: what is missing comes from the backlog.
    redis-benchmark -p "$primary" -q -n 8000 -c 10 -r 10000 -d 500 -t set,incr >/dev/null &
    local load=$!
    at "$primary" CLIENT KILL TYPE replica >/dev/null
    wait "$load"
    await is_linked "$replica"
    has_all "after its connection was cut"
    grep -q 'Successful partial resynchronization' replica.log || fail "it synchronised as a whole"

    # A new one, by a file at the primary; while keys change.
    ended "$process"
    kill -KILL "$process"
    at "$primary" CONFIG SET repl-diskless-sync no >/dev/null
    redis-benchmark -p "$primary" -q -n 8000 -c 10 -r 10000 -d 500 -t set,incr >/dev/null &
    load=$!
    replica=$(port)
    start=serve_client redis_node again "$replica" --replicaof "127.0.0.1 $primary"
    wait "$load"
    await is_linked "$replica"
    has_all "after it began anew"
}

# Three nodes find one another by their bus; keys lie at all, moved slots move their keys, and one that is killed is found missing.
case_redis_cluster() {
    need redis-server redis-cli redis-benchmark
    local number ports=() nodes=() bus addresses=()
    for number in 0 1 2; do
        ports+=("$(port)")
        bus=$(port)
        redis_node "node$number" "${ports[number]}" --cluster-enabled yes --cluster-port "$bus" --cluster-node-timeout 1000 --cluster-config-file "$DIR/node$number.conf"
        nodes+=("$server")
        addresses+=("127.0.0.1:${ports[number]}")
    done
    client redis-cli --cluster create "${addresses[@]}" --cluster-yes >create.log || fail "$(tail -n 1 create.log)"
    agrees() { at "$1" CLUSTER INFO | tr -d '\r' | grep -qx "cluster_state:$2"; }
    for number in 0 1 2; do await agrees "${ports[number]}" ok; done

    # Redirected from the first to where each lies.
    awk 'BEGIN { for (i = 0; i < 600; i++) print "SET key" i " value" i }' | client redis-cli -c -p "${ports[0]}" >set.log
    [ "$(grep -cx OK set.log)" = 600 ] || fail "SET: $(grep -vx OK set.log | head -n 1)"
    client redis-benchmark -p "${ports[0]}" --cluster -q -n 3000 -c 10 -t set,get >benchmark.log 2>&1 || fail "$(tail -n 1 benchmark.log)"

    # A part of the slots moves, keys and all, from node to node.
    client redis-cli --cluster reshard "${addresses[0]}" --cluster-from all --cluster-to "$(at "${ports[2]}" CLUSTER MYID)" \
        --cluster-slots 100 --cluster-yes >reshard.log || fail "$(tail -n 1 reshard.log)"
    awk 'BEGIN { for (i = 0; i < 600; i++) print "GET key" i }' | client redis-cli -c -p "${ports[1]}" >got
    awk 'BEGIN { for (i = 0; i < 600; i++) print "value" i }' >wanted
    grep -x 'value[0-9]*' got >values
    same_file wanted values

    ended "${nodes[2]}"
    kill -KILL "${nodes[2]}"
    await agrees "${ports[0]}" fail
    await agrees "${ports[1]}" fail
}
