#!/usr/bin/env bash
# What redis-server takes for a GET by itself, with one request of each of 50 clients at once, and with 16: see own_time.c. Needs redis and a C compiler.
set -euo pipefail
if [ $# -gt 0 ]; then
    echo "usage: [PORT=N] own_time.sh" >&2
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

${CC:-cc} -O2 -shared -fPIC -o "$folder/own_time.so" "$here/own_time.c" -ldl
port=${PORT:-19111}
if redis-cli -p "$port" ping >/dev/null 2>&1; then
    echo "own_time.sh: somebody serves at port $port: set PORT to another" >&2
    exit 1
fi
for pipeline in 1 16; do
    for _ in 1 2 3; do
        PIPELINE=$pipeline LD_PRELOAD=$folder/own_time.so taskset -c 0 redis-server --port "$port" --save '' --appendonly no --dir "$folder" \
            --logfile "$folder/log" >/dev/null 2>"$folder/times" &
        server=$!
        until redis-cli -p "$port" ping >/dev/null 2>&1; do
            kill -0 "$server" || { cat "$folder/log" >&2; exit 1; }
        done
        # The benchmark only begins: nobody answers it once the library does.
        taskset -c 1 timeout 5 redis-benchmark -p "$port" -c 50 -P "$pipeline" -n 100000000 -t get -q >/dev/null 2>&1 || true
        kill -9 "$server"
        wait "$server" 2>/dev/null || true
        server=
        echo "$pipeline in a pipeline: $(tail -n 1 "$folder/times")"
    done
done
