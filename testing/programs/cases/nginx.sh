# shellcheck shell=bash
declare_case nginx_keep_alive 30
declare_case nginx_sendfile 30
declare_case nginx_reload 40
declare_case nginx_other_user 30
declare_case nginx_short 30 short

# nginx_start [USER]: whose workers are, if we may choose: root.
nginx_start() {
    need nginx wrk curl
    nginx_port=$(port)
    mkdir www
    random_file www/megabyte 1048576
    random_file www/large 30000001
    printf 'hello\n' >www/small
    sed "s|@DIR@|$DIR|g; s|@PORT@|$nginx_port|g; s|@USER@|${1:-root}|g" "$home/cases/nginx.conf" >nginx.conf
    [ "$(id -u)" = 0 ] || sed -i '/^user /d' nginx.conf
    serve nginx -c "$DIR/nginx.conf" -e "$DIR/error.log" -g 'daemon off;'
    await_port "$nginx_port"
    url=http://127.0.0.1:$nginx_port
}

# load SECONDS CONNECTIONS PATH: no error of any kind may come of it.
load() {
    client wrk -t 1 -c "$2" -d "$1" --timeout 5s "$url/$3" >wrk.log || fail "wrk: $(tail -n 1 wrk.log)"
    ! grep -E 'Socket errors|Non-2xx' wrk.log || fail "$(grep -E 'Socket errors|Non-2xx' wrk.log)"
    grep -qE ' [1-9][0-9]* requests in' wrk.log || fail "no requests: $(tail -n 1 wrk.log)"
}

case_nginx_keep_alive() {
    nginx_start
    load 2 20 small
    load 1 1 small
}

# Workers that have given up root, as they do in life; clients have not.
case_nginx_other_user() {
    nginx_start 'nobody nogroup'
    load 1 4 small
    client curl -sS -o got "$url/large"
    same_file www/large got
}

case_nginx_sendfile() {
    nginx_start
    load 1 4 megabyte
    # One connection after all for several files.
    client curl -sS -o got.1 "$url/megabyte" -o got.2 "$url/large" -o got.3 "$url/small" -o got.4 "$url/large"
    same_file www/megabyte got.1
    same_file www/large got.2
    same_file www/small got.3
    same_file www/large got.4
    # A slow reader, and a part.
    client curl -sS --limit-rate 20M -o got.5 "$url/large"
    same_file www/large got.5
    client curl -sS -r 1000000-1999999 -o got.6 "$url/large"
    cmp -s <(tail -c +1000001 www/large | head -c 1000000) got.6 || fail "a part is wrong"
}

# New workers twice while requests run; the old ones finish theirs, so clients may see a closed connection and nothing worse.
case_nginx_reload() {
    nginx_start
    client wrk -t 1 -c 10 -d 3 --timeout 5s "$url/small" >wrk.log &
    local load=$! turn
    for turn in 1 2; do
        sleep 1
        kill -HUP "$server"
    done
    wait "$load" || fail "wrk: $(tail -n 1 wrk.log)"
    ! grep -E 'Non-2xx' wrk.log || fail "$(grep Non-2xx wrk.log)"
    ! grep -E 'Socket errors: .*(connect [1-9]|timeout [1-9])' wrk.log || fail "$(grep 'Socket errors' wrk.log)"
    grep -qE ' [1-9][0-9]{2,} requests in' wrk.log || fail "few requests: $(tail -n 1 wrk.log)"
    client curl -sS -o got "$url/megabyte"
    same_file www/megabyte got
}

case_nginx_short() {
    nginx_start
    client wrk -t 1 -c 4 -d 1 -H 'Connection: close' "$url/small" >wrk.log || fail "wrk: $(tail -n 1 wrk.log)"
    ! grep -E 'Socket errors|Non-2xx' wrk.log || fail "$(grep -E 'Socket errors|Non-2xx' wrk.log)"
}
