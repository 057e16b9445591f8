#!/usr/bin/env bash
# How many times as fast as over TCP memcached could be at most with the load of `sovia bench --only memcached`, if what carries the bytes took no time: of each of its
# threads that serves, `perf` tells what is neither in libsovia.so nor the kernel nor a copy, while memcaslap runs beside it on the other CPU. TCP and sovia in
# turn. Needs memcached, memcaslap (Debian: libmemcached-tools), perf (linux-perf), and two CPUs.
set -euo pipefail
if [ $# -gt 1 ] || ! [[ ${1:-3} =~ ^[1-9][0-9]?$ ]]; then
    echo "usage: [SOVIA=FILE] [PORT=N] bound.sh [ROUNDS, 1 to 99]" >&2
    exit 2
fi
rounds=${1:-3}
here=$(cd "$(dirname "$0")" && pwd)
sovia=${SOVIA:-$here/../../target/release/sovia}
# shellcheck source=single.sh
source "$here/single.sh"
need memcached memcaslap perf "$sovia"
take_port 19112
root=()
if [ "$(id -u)" = 0 ]; then root=(-u root); fi
printf 'key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9\n' >"$folder/load"

# Requests a second; with a second argument, a profile is taken meanwhile.
load() {
    "${way[@]}" taskset -c 0 memcached -U 0 -t 1 -l 127.0.0.1 -p "$port" "${root[@]}" 2>/dev/null &
    server=$!
    until listens; do
        kill -0 "$server" 2>/dev/null || { echo "bound.sh: memcached does not start at port $port" >&2; exit 1; }
    done
    "${way[@]}" taskset -c 1 memcaslap -s "127.0.0.1:$port" -T 1 -c 50 -t 4s -F "$folder/load" >"$folder/said" 2>/dev/null &
    local client=$!
    if [ -n "${1:-}" ]; then
        # It begins by filling the server.
        sleep 1.5
        perf record -q -e cpu-clock -F 4999 -p "$server" -o "$folder/profile" -- sleep 2 2>/dev/null
    fi
    wait "$client"
    kill "$server"
    wait "$server" 2>/dev/null || true
    server=
    sed -n 's/.*TPS: \([0-9]*\).*/\1/p' "$folder/said"
}

# Percent of what the worker's CPU did that is the program's own.
own() {
    perf report -i "$folder/profile" --no-children --comm mc-worker --sort dso,symbol -g none 2>/dev/null |
        awk '/%/ && $1 ~ /^[0-9.]+%$/ { part = $1 + 0; all += part; if ($0 ~ /libsovia|kernel|\[k\]|vdso|mem(move|cpy)/) not_own += part }
            END { printf "%.1f\n", 100 * (all - not_own) / all }'
}

for _ in $(seq "$rounds"); do
    way=()
    tcp=$(load)
    way=("$sovia" run --)
    now=$(load profiled)
    percent=$(own)
    awk -v tcp="$tcp" -v now="$now" -v percent="$percent" 'BEGIN {
        took = 1e9 / now; own = took * percent / 100
        printf "TCP %d /s; sovia %d /s, %.2f x, %.0f ns a request, of which the server'"'"'s own %.0f ns (%.1f %%): at most %.1f x; 10 x would leave %.0f ns\n",
            tcp, now, now / tcp, took, own, percent, 1e9 / own / tcp, 1e8 / tcp }'
done
