#!/usr/bin/env bash
# What a server takes for a request by itself, with one of each of 50 clients at once: redis-server for a GET (and with 16 in a pipeline), see own_time.c, or
# memcached for those of the load that `sovia bench --only memcached` has, see own_time_memcached.c. Needs the server, its benchmark and a C compiler.
set -euo pipefail
if [ $# -gt 1 ] || [[ ${1:-redis} != @(redis|memcached) ]]; then
    echo "usage: [PORT=N] own_time.sh [redis|memcached]" >&2
    exit 2
fi
program=${1:-redis}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=single.sh
source "$here/single.sh"
source=own_time.c
if [ "$program" = memcached ]; then source=own_time_memcached.c; fi
${CC:-cc} -O2 -shared -fPIC -o "$folder/own_time.so" "$here/$source" -ldl
take_port 19111

# The benchmark only begins: nobody answers it once the library does.
redis() {
    PIPELINE=$1 LD_PRELOAD=$folder/own_time.so taskset -c 0 redis-server --port "$port" --save '' --appendonly no --dir "$folder" \
        --logfile "$folder/log" >/dev/null 2>"$folder/times" &
    server=$!
    load() { taskset -c 1 timeout 5 redis-benchmark -p "$port" -c 50 -P "$1" -n 100000000 -t get -q; }
    measure "$1 in a pipeline" "$1"
}
memcached() {
    root=()
    if [ "$(id -u)" = 0 ]; then root=(-u root); fi
    printf 'key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n' >"$folder/load"
    LD_PRELOAD=$folder/own_time.so taskset -c 0 memcached -U 0 -t 1 -l 127.0.0.1 -p "$port" "${root[@]}" 2>"$folder/times" &
    server=$!
    load() { cd "$folder" && taskset -c 1 timeout 12 memcaslap -s "127.0.0.1:$port" -T 1 -c 50 -t 10s -F load; }
    measure "memcaslap's load"
}
measure() {
    until listens; do
        kill -0 "$server" || { cat "$folder"/log "$folder/times" >&2; exit 1; }
    done
    (load "${2:-}" >/dev/null 2>&1) || true
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    server=
    grep -q request "$folder/times" || { echo "own_time.sh: $program answered too little" >&2; exit 1; }
    echo "$1: $(tail -n 1 "$folder/times")"
}

for _ in 1 2 3; do
    if [ "$program" = redis ]; then
        redis 1
        redis 16
    else
        memcached
    fi
done
