# shellcheck shell=bash
# Rates of programs, for gain.sh: what each does of its work in a second. Sourced with kit.sh, whose cases say how the programs are started.
for file in redis redis_nodes nginx proxies postgresql memcached mariadb apache messaging mosquitto runtimes ssh rsync ftp inetd rpc; do
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
    [redis_cluster]="GETs/s, redis-benchmark --cluster, 50 clients, three nodes"
    [ftp_get]="MB/s, tnftp and vsftpd, 145 MB"
    [ftp_put]="MB/s, tnftp and vsftpd, 145 MB"
    [lftp_get]="MB/s, lftp and vsftpd, 145 MB"
    [ssh]="MB/s, 200 MB of ssh THERE cat"
    [scp]="MB/s, scp of 200 MB"
    [ssh_forward]="MB/s, curl through ssh -L, 20 MB, curl and its server on TCP"
    [rsync]="MB/s, 145 MB from a daemon"
    [inetd]="lines there and back/s, a service that knows stdio only"
    [rpc]="calls/s, no arguments, TI-RPC"
    [go]="requests/s, wrk, 10 connections, 1 kB"
)
order=(memcached_50 memcached_1 postgresql_select postgresql_write nginx_keep_alive nginx_close nginx_large nginx_proxy haproxy_http haproxy_tcp redis_get
    redis_replica mosquitto node java mariadb_one mariadb_eight apache erlang zeromq openmpi
    redis_cluster ftp_get ftp_put lftp_get ssh scp ssh_forward rsync inetd rpc go)

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

gain_redis_cluster() {
    local number ports=() addresses=()
    for number in 0 1 2; do
        ports+=("$(port)")
        redis_node "node$number" "${ports[number]}" --cluster-enabled yes --cluster-port "$(port)" --cluster-config-file "$DIR/node$number.conf"
        addresses+=("127.0.0.1:${ports[number]}")
    done
    redis-cli --cluster create "${addresses[@]}" --cluster-yes >create.log
    agrees() { at "$1" CLUSTER INFO | tr -d '\r' | grep -qx cluster_state:ok; }
    for number in 0 1 2; do await agrees "${ports[number]}"; done
    client redis-benchmark -p "${ports[0]}" --cluster -q -n 200000 -c 50 -t get --csv | awk -F'"' '/GET/ { print $4 }'
}

# megabytes_of COMMAND...: MB per second of a command that moves $bytes.
megabytes_of() {
    local began ended
    began=${EPOCHREALTIME/./}
    "$@"
    ended=${EPOCHREALTIME/./}
    echo $((bytes / (ended - began)))
}

# The same file five times.
gain_ftp() {
    bytes=725000000
    ftp_start
    random_file site/file 145000000
    printf '%s\n' binary "$1" "$1" "$1" "$1" "$1" >order
    megabytes_of tnftp_run -p <order
}
gain_ftp_get() { gain_ftp 'get file /dev/null'; }
gain_ftp_put() { gain_ftp 'put site/file in/file'; }

gain_lftp_get() {
    bytes=725000000
    ftp_start
    random_file site/file 145000000
    lftp_run() {
        client lftp -c "set net:max-retries 1; set ftp:ssl-allow no; open -u ${ftp_login/ /,} ftp://127.0.0.1:$ftp_port; cat file file file file file" >/dev/null
    }
    megabytes_of lftp_run
}

ssh_file() {
    bytes=200000000
    ssh_start
    echo 'Ciphers aes128-gcm@openssh.com' >>ssh.conf
    random_file file $bytes
}
gain_ssh() {
    ssh_file
    ssh_cat() { ssh_run cat "$DIR/file" >/dev/null; }
    megabytes_of ssh_cat
}
gain_scp() { ssh_file; megabytes_of client scp -q -F ssh.conf "there:$DIR/file" /dev/null; }

gain_ssh_forward() {
    local left
    ssh_start
    by_itself origin_nginx
    left=$(port)
    client ssh -F ssh.conf -N -L "127.0.0.1:$left:127.0.0.1:$origin" -o ExitOnForwardFailure=yes there >ssh.log 2>&1 &
    await is_listening "$left"
    url=http://127.0.0.1:$left
    by_itself fetch_rate large 10
}

gain_rsync() {
    bytes=145000000
    rsync_start
    random_file tree/file $bytes
    megabytes_of rsync_run --whole-file "$url/tree/file" got/
}

gain_inetd() {
    cc -O2 -o lines "$home/servers/lines.c"
    inetd_port=$(port)
    inetd_start "$inetd_port" "$DIR/lines"
    client "$(python)" "$home/clients/lines.py" "$inetd_port" "${SECONDS_EACH:-1}"
}

gain_rpc() { rpc_start; client ./client "$rpc_port" time 0 20000 | awk 'NR == 1 { printf "%.0f\n", 1000000000 / $1 }'; }

gain_go() {
    CGO_ENABLED=0 go_build http
    web_start "$DIR/http"
    wrk_rate "$url/small"
}
