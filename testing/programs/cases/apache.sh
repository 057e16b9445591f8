# shellcheck shell=bash
declare_case apache_event 40
declare_case apache_prefork 40

# apache_start MPM
apache_start() {
    need apache2 ab wrk curl
    local port
    port=$(port)
    mkdir www
    random_file www/megabyte 1048576
    random_file www/large 30000001
    random_file www/kilobyte 1024
    cat >apache.conf <<END
ServerName localhost
Listen 127.0.0.1:$port
PidFile $DIR/pid
ErrorLog $DIR/error.log
LoadModule mpm_$1_module /usr/lib/apache2/modules/mod_mpm_$1.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
$([ "$(id -u)" != 0 ] || printf 'User nobody\nGroup nogroup')
DocumentRoot $DIR/www
MaxKeepAliveRequests 0
EnableSendfile On
Mutex file:$DIR
DefaultRuntimeDir $DIR
END
    # With prefork it ends its whole process group.
    serve setsid --wait apache2 -f "$DIR/apache.conf" -DFOREGROUND
    await_port "$port"
    at_end apache_stop "$server"
    url=http://127.0.0.1:$port
}

apache_stop() {
    kill -TERM "$(cat pid)" 2>/dev/null || return 0
    wait "$1" || true
}

# apache_try MPM: ten connections that are kept, connections of one request, files by sendfile; two graceful restarts under load.
apache_try() {
    apache_start "$1"
    client ab -q -k -n 5000 -c 10 "$url/kilobyte" >ab.log 2>&1 || fail "ab: $(tail -n 1 ab.log)"
    grep -qE 'Failed requests: *0$' ab.log || fail "$(grep 'Failed' ab.log)"
    client ab -q -n 500 -c 4 "$url/kilobyte" >ab.log 2>&1 || fail "ab: $(tail -n 1 ab.log)"
    grep -qE 'Failed requests: *0$' ab.log || fail "$(grep 'Failed' ab.log)"
    client curl -sS -o got.1 "$url/megabyte" -o got.2 "$url/large" -o got.3 "$url/kilobyte"
    same_file www/megabyte got.1
    same_file www/large got.2
    same_file www/kilobyte got.3
    client curl -sS --limit-rate 30M -o got.4 "$url/large"
    same_file www/large got.4

    client wrk -t 1 -c 10 -d 3 --timeout 5s "$url/kilobyte" >wrk.log &
    local load=$! turn
    for turn in 1 2; do
        sleep 1
        kill -USR1 "$(cat pid)"
    done
    wait "$load" || fail "wrk: $(tail -n 1 wrk.log)"
    ! grep -E 'Non-2xx' wrk.log || fail "$(grep Non-2xx wrk.log)"
    ! grep -E 'Socket errors: .*(connect [1-9]|timeout [1-9])' wrk.log || fail "$(grep 'Socket errors' wrk.log)"
    client curl -sS -o got.5 "$url/large"
    same_file www/large got.5
    ! grep -E ':(error|crit|alert|emerg)\]' error.log || fail "$(grep -E ':(error|crit|alert|emerg)\]' error.log | tail -n 1)"
}

case_apache_event() { apache_try event; }
case_apache_prefork() { apache_try prefork; }
