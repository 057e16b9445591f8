#!/usr/bin/env bash
# What memcached takes for a request by itself, with one of each of memcaslap's 50 clients at once, of the load that `sovia bench --only memcached` has: see
# own_time_memcached.c. Needs memcached, memcaslap and a C compiler.
set -euo pipefail
if [ $# -gt 0 ]; then
    echo "usage: [PORT=N] own_time_memcached.sh" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null || true; fi
    rm -rf "$folder"
}
trap stop EXIT

${CC:-cc} -O2 -shared -fPIC -o "$folder/own_time.so" "$here/own_time_memcached.c" -ldl
printf 'key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n' >"$folder/load"
port=${PORT:-19112}
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
if listens; then
    echo "own_time_memcached.sh: somebody serves at port $port: set PORT to another" >&2
    exit 1
fi
root=()
if [ "$(id -u)" = 0 ]; then root=(-u root); fi
for _ in 1 2 3; do
    LD_PRELOAD=$folder/own_time.so taskset -c 0 memcached -U 0 -t 1 -l 127.0.0.1 -p "$port" "${root[@]}" 2>"$folder/times" &
    server=$!
    until listens; do
        kill -0 "$server" || { cat "$folder/times" >&2; exit 1; }
    done
    # It only begins: nobody answers it once the library does.
    (cd "$folder" && taskset -c 1 timeout 12 memcaslap -s "127.0.0.1:$port" -T 1 -c 50 -t 10s -F load >/dev/null 2>&1) || true
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    server=
    grep -q request "$folder/times" || { echo "own_time_memcached.sh: memcached answered too little in 12 s" >&2; exit 1; }
    echo "memcaslap's load: $(tail -n 1 "$folder/times")"
done
