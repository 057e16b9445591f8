#!/usr/bin/env bash
# What sovia gains: each program over TCP and under sovia in turns, medians of the ratios' parts, and the ratio. docs/compat quotes it.
#   gain.sh [OPTION...] [PROGRAM...]     all programs, unless some are named
#     --sovia FILE     the program to test        (default: sovia of the release build)
#     --rounds N       of each                    (default: 5)
#     --ends both|server|client                   (default: both)
#     --list           the programs
# With CHRT=10 in the environment everything runs under chrt -f 10: on a machine that others load, too.
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=kit.sh
source "$home/kit.sh"
declare_case() { :; }
for file in redis nginx proxies postgresql memcached mariadb apache messaging; do
    # shellcheck disable=SC1090 # all are beside this script
    source "$home/cases/$file.sh"
done

# A program is a function gain_NAME that starts what it needs and prints one number; `unit` says what more of it means.
declare -A unit=(
    [memcached_50]="operations/s, memcaslap, 50 connections, 100 B values"
    [memcached_1]="operations/s, memcaslap, 1 connection"
    [postgresql_select]="transactions/s, pgbench -S, 1 client"
    [postgresql_write]="transactions/s, pgbench, 1 client"
    [nginx_keep_alive]="requests/s, wrk, 10 connections, 1 kB"
    [nginx_close]="requests/s, wrk, 10 connections, one request each"
    [nginx_large]="MB/s, curl, 30 MB"
    [nginx_proxy]="requests/s, wrk, 10 connections, 1 kB, through nginx"
    [haproxy_http]="requests/s, wrk, 10 connections, 1 kB, through haproxy"
    [haproxy_tcp]="MB/s, curl, 20 MB, through haproxy in mode tcp"
    [redis_get]="GETs/s, redis-benchmark, 50 clients"
    [redis_replica]="MB/s of SETs until the replica has them"
    [mosquitto]="messages/s, QoS 1, to one subscriber"
    [node]="requests/s, wrk, 10 connections, 1 kB"
    [mariadb_one]="queries/s, mariadb-slap, SELECT 1, 1 client"
    [mariadb_eight]="queries/s, mariadb-slap, SELECT 1, 8 clients"
    [apache]="requests/s, ab -k, 10 connections, 1 kB, event"
    [erlang]="terms there and back/s, two nodes"
    [zeromq]="requests/s, REQ and REP, Python"
    [openmpi]="messages of 1 byte there and back/s, two ranks"
    [java]="requests/s, wrk, 10 connections, 1 kB"
)
order=(memcached_50 memcached_1 postgresql_select postgresql_write nginx_keep_alive nginx_close nginx_large nginx_proxy haproxy_http haproxy_tcp redis_get
    redis_replica mosquitto node java mariadb_one mariadb_eight apache erlang zeromq openmpi)

# Requests per second of wrk on $url/PATH.
wrk_rate() {
    client wrk -t 1 -c 10 -d "${SECONDS_EACH:-1}" "$@" >wrk.log
    awk '/^Requests\/sec:/ { print $2 }' wrk.log
}

# MB per second of a file fetched N times over one connection: fetch_rate FILE N.
fetch_rate() {
    local options=() began ended turn
    for turn in $(seq "$2"); do options+=(-o /dev/null "$url/$1"); done
    began=${EPOCHREALTIME/./}
    client curl -sS -f "${options[@]}"
    ended=${EPOCHREALTIME/./}
    echo $(($2 * $(stat -c %s "www/$1") / (ended - began)))
}

gain_memcached() {
    memcached_start
    client memcaslap -s "127.0.0.1:$memcached_port" -T 1 -c "$1" -x "$2" -X 100 >load.log 2>&1
    awk '/TPS:/ { for (i = 1; i < NF; i++) if ($i == "TPS:") print $(i + 1) }' load.log
}
gain_memcached_50() { gain_memcached 50 300000; }
gain_memcached_1() { gain_memcached 1 50000; }

gain_pgbench() {
    postgresql_start
    pgbench -q -i -s 1 >init.log 2>&1
    client pgbench -n -c 1 -T "${SECONDS_EACH:-1}" "$@" >pgbench.log 2>&1
    awk '/^tps = / { print $3 }' pgbench.log
}
gain_postgresql_select() { gain_pgbench -S; }
gain_postgresql_write() { gain_pgbench; }

gain_nginx_keep_alive() { nginx_start 'nobody nogroup'; wrk_rate "$url/kilobyte"; }
gain_nginx_close() { nginx_start 'nobody nogroup'; wrk_rate -H 'Connection: close' "$url/kilobyte"; }
gain_nginx_large() { nginx_start 'nobody nogroup'; fetch_rate large 10; }
gain_nginx_proxy() { origin_nginx; nginx_proxy_start on; url=$http wrk_rate "$http/kilobyte"; }
gain_haproxy_http() { origin_nginx; haproxy_start; wrk_rate "$http/kilobyte"; }
gain_haproxy_tcp() { origin_nginx; haproxy_start; url=$tcp fetch_rate large 10; }

gain_redis_get() {
    redis
    client redis-benchmark -p "$redis_port" -q -n 200000 -c 50 -t get --csv | awk -F'"' '/GET/ { print $4 }'
}

gain_redis_replica() {
    local primary replica began ended
    primary=$(port) replica=$(port)
    mkdir a b
    serve redis-server --bind 127.0.0.1 --port "$primary" --dir "$PWD/a" --save '' --repl-diskless-sync-delay 0
    await_port "$primary"
    serve_client redis-server --bind 127.0.0.1 --port "$replica" --dir "$PWD/b" --save '' --replicaof "127.0.0.1 $primary"
    await_port "$replica"
    linked() { redis-cli -p "$replica" INFO replication | grep -q master_link_status:up; }
    await linked
    # The link of the first synchronisation is shared with a child that saves.
    redis-cli -p "$primary" CLIENT KILL TYPE replica >/dev/null
    sleep 0.2
    await linked
    began=${EPOCHREALTIME/./}
    redis-benchmark -p "$primary" -q -n 20000 -c 20 -d 10000 -r 1000 -t set >/dev/null
    [ "$(redis-cli -p "$primary" WAIT 1 20000)" = 1 ]
    ended=${EPOCHREALTIME/./}
    echo $((200000000 / (ended - began)))
}

gain_mosquitto() {
    local began ended
    # shellcheck source=cases/mosquitto.sh
    source "$home/cases/mosquitto.sh"
    mosquitto_start
    seq 20000 >messages
    subscribe heard 20000 1 news
    began=${EPOCHREALTIME/./}
    publish -q 1 -t news -l <messages
    wait "$process"
    ended=${EPOCHREALTIME/./}
    echo $((20000 * 1000000 / (ended - began)))
}

gain_node() { web_start node "$home/servers/http.js"; wrk_rate "$url/small"; }
gain_java() { web_start java -Dsun.net.httpserver.nodelay=true "$home/servers/Http.java"; wrk_rate "$url/small" >/dev/null; wrk_rate "$url/small"; }

# Seconds for so many queries are the third column.
gain_mariadb() {
    mariadb_start
    mariadb_slap rate --query='SELECT 1' --create-schema=mysql --concurrency="$1" --number-of-queries="$2"
    awk -F, -v queries="$2" '{ print queries / $3 }' rate
}
gain_mariadb_one() { gain_mariadb 1 30000; }
gain_mariadb_eight() { gain_mariadb 8 60000; }

gain_apache() {
    apache_start event
    client ab -q -k -n 10000 -c 10 "$url/kilobyte" >/dev/null 2>&1
    client ab -q -k -n 60000 -c 10 "$url/kilobyte" 2>/dev/null | awk '/^Requests per second/ { print $4 }'
}

gain_erlang() { case_erlang; rate_of client.log; }
gain_zeromq() { case_zeromq; rate_of client.log; }
gain_openmpi() { ranks_each=1 case_openmpi; rate_of mpi.log; }
rate_of() { sed -n 's/^whole, \([0-9]*\) a second$/\1/p' "$1"; }
# shellcheck source=cases/runtimes.sh
source "$home/cases/runtimes.sh"

# One measurement in a folder and a process of its own: gain.sh --one NAME ENDS
if [ "${1:-}" = --one ]; then
    ends=$3
    cd "$DIR"
    : >server.upgrades
    : >client.upgrades
    chmod 666 server.upgrades client.upgrades
    # Files of one kilobyte where a server of files makes its own.
    mkdir() { command mkdir "$@"; [ "$*" != www ] || random_file www/kilobyte 1024; }
    "gain_$2"
    exit
fi

sovia=${CARGO_TARGET_DIR:-$home/../../target}/release/sovia rounds=5 ends=both names=()
while [ $# -gt 0 ]; do
    case $1 in
        --sovia) sovia=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --ends) ends=$2; shift ;;
        --list) for name in "${order[@]}"; do printf '%-18s %s\n' "$name" "${unit[$name]}"; done; exit ;;
        -h | --help) sed -n '2,8s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
        -*) echo "gain.sh: no option $1" >&2; exit 2 ;;
        *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=("${order[@]}")
SOVIA=$(realpath "$sovia")
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sovia-gain-XXXXXX")
chmod 755 "$WORK"
export SOVIA WORK
command mkdir "$WORK/ports"
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM

# measure NAME ENDS: prints the number, or nothing.
measure() {
    local leader
    DIR=$WORK/run
    export DIR
    rm -rf "$DIR"
    command mkdir "$DIR"
    chmod 755 "$DIR"
    setsid ${CHRT:+chrt -f "$CHRT"} timeout 60 "${BASH_SOURCE[0]}" --one "$1" "$2" >"$DIR/number" 2>"$DIR/errors" </dev/null &
    leader=$!
    wait "$leader" || true
    stop_group "$leader"
    tail -n 1 "$DIR/number" | grep -xE '[0-9.]+' || tail -n 1 "$DIR/number" >>"$DIR/errors"
}

median() { sort -g | awk '{ all[NR] = $1 } END { if (NR) print (NR % 2) ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2 }'; }

printf '%-18s %12s %12s %7s   %s\n' program TCP "$ends" gain unit
for name in "${names[@]}"; do
    [ -n "${unit[$name]:-}" ] || { echo "gain.sh: no program $name; --list names them" >&2; exit 2; }
    tcp='' under=''
    for _ in $(seq "$rounds"); do
        tcp+=$(measure "$name" neither)$'\n'
        under+=$(measure "$name" "$ends")$'\n'
    done
    a=$({ grep . <<<"$tcp" || true; } | median)
    b=$({ grep . <<<"$under" || true; } | median)
    if [ -z "$a" ] || [ -z "$b" ]; then
        printf '%-18s not measured: %s\n' "$name" "$(tail -n 1 "$WORK/run/errors")"
    else
        printf '%-18s %12.0f %12.0f %6.2f×   %s\n' "$name" "$a" "$b" "$(awk "BEGIN { print $b / $a }")" "${unit[$name]}"
    fi
done
