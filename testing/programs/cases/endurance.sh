# shellcheck shell=bash
declare_case endurance_reload 240 alone
declare_case endurance_churn 900 alone
declare_case endurance_crowd 500 alone
# Both ends are one program, so their upgrades are noted at the client only.
declare_case endurance_kills 1800 short alone

# Short in each run; with --long for minutes.
long() { [ "${LONG:-no}" = yes ]; }

# Memory files of connections that a process has.
memory_files() {
    find "/proc/$1/fd" -lname '/memfd:sovia*' ! -lname '*sovia-process*' ! -lname '*sovia-board*' 2>/dev/null | wc -l
}

# Connections whose memory a process has mapped: where there are many they go on without its file.
streams() { awk '/memfd:sovia-stream/ { print $5 }' "/proc/$1/maps" | sort -u | wc -l; }

# What is begun from now on leaves TCP soon, however short those before it were.
leave_soon() {
    printf '[connection]\nafter-turns = 8\nafter-bytes = 131072\n' >soon.toml
    export SOVIA_CONFIG=$DIR/soon.toml
}

sockets() {
    find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null | wc -l
}

# has_dropped PID COUNT: it has no more sockets than that, and no memory file but for those of as many.
has_dropped() { [ "$(sockets "$1")" -le "$2" ] && [ "$(memory_files "$1")" = 0 ]; }

# bound CONNECTIONS: the kB by which a process may have grown after so many. What of a connection is not given back costs its page of cursors at least, so
# 1 kB for each shows one in four; what its allocator keeps is the rest.
bound() { echo $((4096 + $1)); }

# New workers every two seconds (every half, in short) while files are fetched and compared, and requests run. Old workers end. Then the same natively.
case_endurance_reload() {
    nginx_start
    fresh_workers
    remember "$server" "${workers[@]}"
    reload_for_a_while
    echo "$reloads reloads, $files files, $requests requests, $errors that a reload cut off" >figures
    local worker
    for worker in "${workers[@]}"; do
        # A listener, and the channels to the other and to the master.
        await has_dropped "$worker" 4
    done
    fresh_workers
    await_nothing_more "$(bound 0)" "$server" "${workers[@]}"
    [ "$ends" != neither ] || return 0
    kill -QUIT "$server"
    ended "$server"
    wait "$server" || true
    ends=neither start_server server nginx -c "$DIR/nginx.conf" -e "$DIR/error.log" -g 'daemon off;'
    await_port "$nginx_port"
    ends=neither reload_for_a_while
    echo "natively: $reloads reloads, $requests requests, $errors cut off" >>figures
}

# Workers that have served nobody yet, for these are the same each time.
fresh_workers() {
    await two_workers
    local old=("${workers[@]}")
    kill -HUP "$server"
    are_new() {
        two_workers && [[ " ${old[*]} " != *" ${workers[0]} "* && " ${old[*]} " != *" ${workers[1]} "* ]]
    }
    await are_new
}

# By the title that each takes when it has opened what it needs: before that it has fewer descriptors than it will.
two_workers() {
    mapfile -t workers < <(pgrep -P "$server" -f 'nginx: worker process')
    [ ${#workers[@]} = 2 ]
}

# Sets reloads, files, requests, and the errors that wrk saw.
reload_for_a_while() {
    local seconds=4 pause=0.5 load end
    if long; then seconds=60 pause=2; fi
    reloads=0 files=0
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
    requests=$(awk '/requests in/ { print $1 }' wrk.log)
    # A read or a write that a worker which went has left without an answer.
    errors=$(sed -nE 's/.*Socket errors:.* read ([0-9]+), write ([0-9]+).*/\1 \2/p' wrk.log | awk '{ n = $1 + $2 } END { print n + 0 }')
    await two_workers
}

# Clients come, go and are killed; redis keeps nothing of them.
case_endurance_churn() {
    leave_soon
    redis
    need python3
    local seconds=4
    if long; then seconds=600; fi
    # What the first clients bring with them stays.
    churn $((seconds / 4))
    forget_values
    remember "$server"
    churn "$seconds"
    forget_values
    local births
    births=$(awk '{ print $1 }' churn.log)
    cp churn.log figures
    # Two connections a client, in the mean.
    await_nothing_more "$(bound $((births * 2)))" "$server"
    [ "$(redis-cli -p "$redis_port" PING)" = PONG ] || fail "redis does not answer"
}

churn() {
    client "$(python)" "$home/clients/churn.py" "$redis_port" "$1" 12 >churn.log 2>&1 || fail "$(tail -n 1 churn.log)"
}

# Nor its heap: what its clients stored is theirs.
forget_values() {
    { redis-cli -p "$redis_port" FLUSHALL SYNC && redis-cli -p "$redis_port" MEMORY PURGE; } >/dev/null || fail "redis does not answer"
}

# Either end of a connection is killed at any moment, ten thousand times (two hundred, in short): what arrived is the beginning of what was sent, nobody
# waits for ever, and nothing is left. Both ends are under sovia, or neither.
case_endurance_kills() {
    need cc
    local kills=200 seed seconds=$SECONDS
    leave_soon
    remember
    if long; then kills=10000; fi
    cc -std=gnu11 -O1 -pthread -o ends "$home/../hostile/programs/ends.c" || fail "cc: $?"
    seed=$(date +%s)
    if [ "$ends" = both ]; then
        client ./ends kills "$seed" "$kills" 30 >ends.log 2>&1 || fail "from seed $seed: $(tail -n 1 ends.log)"
    else
        ./ends kills "$seed" 20 30 >ends.log 2>&1 || fail "from seed $seed: $(tail -n 1 ends.log)"
    fi
    local mapped killed cut before after
    read -r _ _ _ mapped _ _ _ killed _ _ _ _ _ cut _ before _ after < <(grep '^runs' ends.log)
    [ "$cut" = 0 ] || fail "from seed $seed: $cut were cut short"
    [ "$ends" != both ] || [ "$mapped" -gt 0 ] || fail "no connection left TCP"
    nobody_left() { [ -z "$(find /proc/[0-9]*/exe -lname "$DIR/ends" 2>/dev/null)" ]; }
    await nobody_left
    # Who started them all keeps as much of each as the churn above allows.
    [ $((after - before)) -le "$(bound "$killed")" ] || fail "from seed $seed: who started them all has $after kB, $before after the first"
    echo "$killed kills in $((SECONDS - seconds)) s, $mapped connections in shared memory; who started them: $before to $after kB" >figures
    await_nothing_more 0
}

# Ten thousand connections (a thousand, in short) held at once: what each costs in memory, and whether each still answers.
case_endurance_crowd() {
    need memcached python3
    local count=1000 limit
    if long; then count=10000; fi
    # One with rings may have two descriptors.
    ulimit -n "$(ulimit -Hn)"
    limit=$(($(ulimit -n) / 2 - 100))
    [ "$limit" -ge "$count" ] || count=$limit
    memcached_port=$(port)
    serve memcached -u nobody -l 127.0.0.1 -p "$memcached_port" -U 0 -t 1 -c $((count * 2 + 100)) -b 4096
    await_port "$memcached_port"
    local held first
    hold $count
    first=$held
    # The server keeps for others what it needed for these.
    await has_dropped "$server" 10
    remember "$server"
    hold $count
    echo "$count connections, $first kB each in both processes, $(tail -n 1 hold.log | awk '{ print $1 " exchanges/s over all, " $2 " over 100" }')" >figures
    await_nothing_more "$(bound $count)" "$server"
}

# hold COUNT: so many connections at once, and then none. Sets held, the kB that one takes.
hold() {
    rm -f go
    mkfifo go
    # Both ways, or to open it would wait for the other end.
    exec 9<>go
    local before after process left
    before=$(resident "$server")
    start_client "$(python)" "$home/clients/hold.py" "$memcached_port" "$1" >hold.log 2>&1 <&9
    until grep -qx held hold.log; do
        kill -0 "$process" 2>/dev/null || fail "$(tail -n 1 hold.log)"
        sleep 0.05
    done
    after=$(resident "$server" "$process")
    held=$(((after - before) / $1))
    left=$(streams "$server")
    [ "$ends" != both ] || [ "$left" -ge "$1" ] || fail "$left of $1 connections left TCP"
    echo go >&9
    exec 9>&-
    wait "$process" || fail "$(tail -n 1 hold.log)"
}
