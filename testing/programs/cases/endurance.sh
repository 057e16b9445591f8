# shellcheck shell=bash
declare_case endurance_reload 150
declare_case endurance_churn 700
declare_case endurance_crowd 300
# Both ends are one program, so their upgrades are noted at the client only.
declare_case endurance_kills 1800 short

# Short in each run; with --long for minutes.
long() { [ "${LONG:-no}" = yes ]; }

# Memory files of connections that a process has.
memory_files() {
    find "/proc/$1/fd" -lname '/memfd:sovia*' ! -lname '*sovia-process*' ! -lname '*sovia-board*' 2>/dev/null | wc -l
}

sockets() {
    find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null | wc -l
}

# has_dropped PID COUNT: it has no more sockets than that, and no memory file but for those of as many.
has_dropped() { [ "$(sockets "$1")" -le "$2" ] && [ "$(memory_files "$1")" = 0 ]; }

# New workers every two seconds (every half, in short) while files are fetched and compared, and requests run. Old workers end.
case_endurance_reload() {
    nginx_start
    local seconds=4 pause=0.5 reloads=0 files=0 load end
    if long; then seconds=60 pause=2; fi
    client wrk -t 1 -c 20 -d "$seconds" --timeout 5s "$url/small" >wrk.log &
    load=$!
    end=$((SECONDS + seconds))
    while [ $SECONDS -lt $end ]; do
        kill -HUP "$server"
        reloads=$((reloads + 1))
        client curl -sS -f -o got.1 "$url/megabyte" -o got.2 "$url/large" || fail "curl: $?"
        same_file www/megabyte got.1
        same_file www/large got.2
        files=$((files + 2))
        sleep "$pause"
    done
    wait "$load" || fail "wrk: $(tail -n 1 wrk.log)"
    ! grep -E 'Non-2xx' wrk.log || fail "$(grep Non-2xx wrk.log)"
    ! grep -E 'Socket errors: .*(connect [1-9]|timeout [1-9])' wrk.log || fail "$(grep 'Socket errors' wrk.log)"
    two_workers() { [ "$(pgrep -c -P "$server")" = 2 ]; }
    await two_workers
    local worker
    for worker in $(pgrep -P "$server"); do
        # A listener, and the channels to the other and to the master.
        await has_dropped "$worker" 4
    done
    echo "$reloads reloads, $files files, $(awk '/requests in/ { print $1 }' wrk.log) requests" >figures
}

# Clients come, go and are killed; redis keeps nothing of them.
case_endurance_churn() {
    redis
    need python3
    local before seconds=4
    before=$(sockets "$server")
    if long; then seconds=600; fi
    client "$(python)" "$home/clients/churn.py" "$redis_port" "$seconds" 12 >churn.log 2>&1 || fail "$(tail -n 1 churn.log)"
    await has_dropped "$server" "$before"
    [ "$(redis-cli -p "$redis_port" PING)" = PONG ] || fail "redis does not answer"
    cp churn.log figures
}

# Either end of a connection is killed at any moment, ten thousand times (two hundred, in short): what arrived is the beginning of what was sent, nobody
# waits for ever, and nothing is left. Both ends are under sovia, or neither.
case_endurance_kills() {
    need cc
    local kills=200 seed seconds=$SECONDS
    if long; then kills=10000; fi
    cc -std=gnu11 -O1 -pthread -o ends "$home/../hostile/programs/ends.c" || fail "cc: $?"
    seed=$(date +%s)
    if [ "$ends" = both ]; then
        client ./ends kills "$seed" "$kills" 30 >ends.log 2>&1 || fail "from seed $seed: $(tail -n 1 ends.log)"
    else
        ./ends kills "$seed" 20 30 >ends.log 2>&1 || fail "from seed $seed: $(tail -n 1 ends.log)"
    fi
    local mapped killed cut
    read -r _ _ _ mapped _ _ _ killed _ _ _ _ _ cut < <(grep '^runs' ends.log)
    [ "$cut" = 0 ] || fail "from seed $seed: $cut were cut short"
    [ "$ends" != both ] || [ "$mapped" -gt 0 ] || fail "no connection left TCP"
    nobody_left() { [ -z "$(find /proc/[0-9]*/exe -lname "$DIR/ends" 2>/dev/null)" ]; }
    await nobody_left
    echo "$killed kills in $((SECONDS - seconds)) s, $mapped connections in shared memory" >figures
}

# Ten thousand connections (a thousand, in short) held at once: what each costs in memory, and whether each still answers.
case_endurance_crowd() {
    need memcached python3
    local count=1000 limit
    if long; then count=10000; fi
    # One with rings has two descriptors.
    ulimit -n "$(ulimit -Hn)"
    limit=$(($(ulimit -n) / 2 - 100))
    [ "$limit" -ge "$count" ] || count=$limit
    memcached_port=$(port)
    serve memcached -u nobody -l 127.0.0.1 -p "$memcached_port" -U 0 -t 1 -c $((count * 2 + 100)) -b 4096
    await_port "$memcached_port"
    mkfifo go
    # Both ways, or to open it would wait for the other end.
    exec 9<>go
    local before after process
    before=$(resident "$server")
    start_client "$(python)" "$home/clients/hold.py" "$memcached_port" $count >hold.log 2>&1 <&9
    until grep -qx held hold.log; do
        kill -0 "$process" 2>/dev/null || fail "$(tail -n 1 hold.log)"
        sleep 0.05
    done
    after=$(($(resident "$server") + $(resident "$process")))
    local files
    files=$(memory_files "$server")
    [ "$ends" != both ] || [ "$files" -ge "$count" ] || fail "$files of $count connections left TCP"
    echo go >&9
    exec 9>&-
    wait "$process" || fail "$(tail -n 1 hold.log)"
    await has_dropped "$server" 10
    echo "$count connections, $(((after - before) / count)) kB each in both processes, $(tail -n 1 hold.log | awk '{ print $1 " exchanges/s over all, " $2 " over 100" }')" >figures
}

# Memory of a process in kB, with its part of what it shares.
resident() {
    awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"
}
