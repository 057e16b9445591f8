# shellcheck shell=bash
declare_case postgresql_pgbench 40
declare_case postgresql_values 40
declare_case postgresql_copy_of_cluster 40

# A cluster of its own, owned by somebody who is not root, as PostgreSQL demands.
postgresql_start() {
    need psql pgbench
    # Debian keeps what only a server needs out of PATH.
    postgresql=$(echo /usr/lib/postgresql/*/bin | awk '{ print $NF }')
    need "$postgresql/initdb" "$postgresql/postgres"
    postgresql_port=$(port)
    mkdir cluster
    [ ${#unprivileged[@]} = 0 ] || chown nobody:nogroup cluster
    "${unprivileged[@]}" "$postgresql/initdb" -D "$DIR/cluster" -U bench -A trust -N >initdb.log 2>&1 || fail "initdb: $(tail -n 1 initdb.log)"
    # It leaves shared memory behind if it is killed.
    serve "${unprivileged[@]}" "$postgresql/postgres" -D "$DIR/cluster" -p "$postgresql_port" -h 127.0.0.1 -c unix_socket_directories= -c fsync=off \
        -c dynamic_shared_memory_type=mmap
    at_end postgresql_stop "$server"
    export PGHOST=127.0.0.1 PGPORT=$postgresql_port PGUSER=bench PGDATABASE=postgres
    until "$postgresql/pg_isready" -q; do
        kill -0 "$server" 2>/dev/null || fail "the server did not start: $(tail -n 1 server.log)"
        sleep 0.02
    done
}

# SIGINT: disconnects its clients and shuts down.
postgresql_stop() {
    kill -INT "$1" 2>/dev/null || return 0
    wait "$1" || true
}

# Four clients move money; none is lost. Simple, extended and prepared protocol; a connection for each transaction.
case_postgresql_pgbench() {
    postgresql_start
    client pgbench -q -i -s 1 >load.log 2>&1 || fail "$(tail -n 1 load.log)"
    local protocol
    for protocol in simple extended prepared; do
        client pgbench -n -M $protocol -c 4 -j 2 -t 100 >pgbench.$protocol 2>&1 || fail "$(tail -n 1 pgbench.$protocol)"
        client pgbench -n -M $protocol -S -c 2 -t 1000 >select.$protocol 2>&1 || fail "$(tail -n 1 select.$protocol)"
    done
    client pgbench -n -S -C -c 2 -t 50 >connect.log 2>&1 || fail "$(tail -n 1 connect.log)"
    local sums
    sums=$(client psql -XAtc "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches),
        (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)")
    [ "$sums" = 't|t|1200' ] || fail "sums: $sums"
}

# Rows up to 5 MB by COPY in and out, a cursor, a query that is cancelled, notifications, and a client that is killed.
case_postgresql_values() {
    postgresql_start
    awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) { v = ""; n = i % 200; while (length(v) < n) v = v rand(); print i "\t" v } }' >rows
    local length
    for length in 1 1000 100000 5000000; do
        printf '%d\t%s\n' $((20000 + length)) "$(head -c $length /dev/urandom | base64 -w 0)" >>rows
    done
    client psql -XAtqc 'CREATE TABLE copied (id int, value text)' -c "COPY copied FROM STDIN" -c 'COPY (SELECT * FROM copied ORDER BY id) TO STDOUT' <rows >got
    same_file rows got
    client psql -XAtq -F "$(printf '\t')" --set=FETCH_COUNT=100 -c 'SELECT id, value FROM copied ORDER BY id' >got
    same_file rows got

    # By a second connection: statement_timeout is the server's own doing, pg_cancel_backend a signal.
    start_client psql -Xc 'SELECT pg_sleep(100)' >cancelled.log 2>&1
    sleeping() { [ "$(psql -XAtc "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(100)'")" = t ]; }
    await sleeping
    ! wait "$process" || fail "a cancelled query ended well"
    grep -q 'canceling statement due to user request' cancelled.log || fail "$(tail -n 1 cancelled.log)"

    { printf 'LISTEN news;\n'; for length in $(seq 50); do printf "SELECT %d;\nNOTIFY news, '%d';\n" "$length" "$length"; done; } | client psql -XAtq >notified
    [ "$(grep -c 'Asynchronous notification "news" with payload' notified)" = 50 ] || fail "notifications are missing"

    # Its backend ends with it.
    start_client psql -XAtqc 'COPY (SELECT value FROM copied, generate_series(1, 1000)) TO STDOUT' >/dev/null 2>&1
    busy() { [ "$(psql -XAtc "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT value%' AND pid <> pg_backend_pid()")" = "$1" ]; }
    await busy 1
    kill -KILL "$process"
    wait "$process" 2>/dev/null || true
    await busy 0
}

# pg_basebackup takes 20 MB by the replication protocol, while pgbench writes and a second connection carries the log.
case_postgresql_copy_of_cluster() {
    postgresql_start
    pgbench -q -i -s 1 >load.log 2>&1
    client pgbench -n -c 1 -T 1 >pgbench.log 2>&1 &
    local load=$!
    mkdir copy
    client "$postgresql/pg_basebackup" -D "$DIR/copy" -X stream -c fast --manifest-checksums=SHA256 >backup.log 2>&1 || fail "$(tail -n 1 backup.log)"
    wait "$load" || fail "$(tail -n 1 pgbench.log)"
    "$postgresql/pg_verifybackup" -q "$DIR/copy" >verify.log 2>&1 || fail "$(head -n 1 verify.log)"
}
