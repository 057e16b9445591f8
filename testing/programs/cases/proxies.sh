# shellcheck shell=bash
declare_case haproxy_http 30
declare_case haproxy_tcp 30
declare_case haproxy_splice 30
declare_case haproxy_uploads 30
declare_case nginx_proxy 30
declare_case nginx_proxy_unbuffered 30

# A proxy is the server of these cases; what is behind it stands at the client's side. So with one end under sovia it is the proxy between two
# strangers, or a stranger between two under sovia.

# origin_nginx: files, behind a proxy.
origin_nginx() {
    need nginx wrk curl
    origin=$(port)
    mkdir www
    random_file www/megabyte 1048576
    random_file www/large 20000001
    printf 'hello\n' >www/small
    sed "s|@DIR@|$DIR|g; s|@PORT@|$origin|g; s|@USER@|nobody nogroup|g" "$home/cases/nginx.conf" >origin.conf
    [ "$(id -u)" = 0 ] || sed -i '/^user /d' origin.conf
    serve_client nginx -c "$DIR/origin.conf" -e "$DIR/error.log" -g 'daemon off;'
    await_port "$origin"
}

# What digests uploads, behind a proxy.
origin_python() {
    need python3 curl
    origin=$(port)
    mkdir www
    random_file www/small 1000
    random_file www/large 20000003
    serve_client "$(python)" "$home/servers/asyncio_server.py" "$origin" "$DIR/www"
    await_port "$origin"
}

# haproxy_start [SPLICE]: what `option`s the kernel's splice takes part by.
haproxy_start() {
    need haproxy
    local http_port tcp_port user=''
    http_port=$(port) tcp_port=$(port)
    [ "$(id -u)" != 0 ] || user=$'user nobody\\n    group nogroup'
    sed "s|@PORT@|$http_port|; s|@TCP@|$tcp_port|; s|@ORIGIN@|$origin|; s|@TRACE@|$DIR/server.upgrades|; s|@USER@|$user|; s|@SPLICE@|${1:-}|" \
        "$home/cases/haproxy.cfg" >haproxy.cfg
    serve haproxy -db -f "$DIR/haproxy.cfg"
    await_port "$tcp_port"
    http=http://127.0.0.1:$http_port tcp=http://127.0.0.1:$tcp_port
}

# Everything comes as it is behind the proxy: many files over one connection, a part, slowly, twenty at once, under load.
fetch_through() {
    url=$1
    client curl -sS -f --dump-header headers -o got.1 "$url/megabyte" -o got.2 "$url/large" -o got.3 "$url/small" -o got.4 "$url/large"
    same_file www/megabyte got.1
    same_file www/large got.2
    same_file www/small got.3
    same_file www/large got.4
    client curl -sS -f --limit-rate 40M -o got.5 "$url/large"
    same_file www/large got.5
    client curl -sS -f -r 1000000-1999999 -o got.6 "$url/large"
    cmp -s <(tail -c +1000001 www/large | head -c 1000000) got.6 || fail "a part is wrong"
    local options=() turn
    for turn in $(seq 20); do options+=(-o "got.many.$turn" "$url/megabyte"); done
    client curl -sS -f --parallel --parallel-max 20 "${options[@]}"
    for turn in $(seq 20); do same_file www/megabyte "got.many.$turn"; done
    load 1 10 small
}

case_haproxy_http() {
    origin_nginx
    haproxy_start
    fetch_through "$http"
    grep -qi '^x-seen-by: haproxy' headers || fail "haproxy was not in between"
}

case_haproxy_tcp() {
    origin_nginx
    haproxy_start
    fetch_through "$tcp"
}

# The kernel is asked to move the bytes from socket to socket through a pipe.
case_haproxy_splice() {
    origin_nginx
    haproxy_start 'option splice-auto\n    option splice-request\n    option splice-response'
    fetch_through "$http"
    fetch_through "$tcp"
}

# Digests of what arrives behind it, of known and of unknown length.
case_haproxy_uploads() {
    origin_python
    haproxy_start
    local through answer
    for through in "$http" "$tcp"; do
        for file in small large; do
            answer=$(client curl -sS -f --data-binary "@www/$file" -H 'Expect:' "$through/upload")
            [ "$answer" = "$(sha256sum <www/$file | cut -d' ' -f1)" ] || fail "digest of $file: $answer"
        done
        answer=$(client curl -sS -f -T - "$through/upload" <www/large)
        [ "$answer" = "$(sha256sum <www/large | cut -d' ' -f1)" ] || fail "digest of a chunked upload: $answer"
    done
}

# nginx_proxy_start BUFFERING: with connections that are kept for the next request.
nginx_proxy_start() {
    local proxy_port
    proxy_port=$(port)
    sed "s|@DIR@|$DIR|g; s|@PORT@|$proxy_port|g; s|@USER@|nobody nogroup|g; s|nginx.pid|proxy.pid|" "$home/cases/nginx.conf" >proxy.conf
    [ "$(id -u)" = 0 ] || sed -i '/^user /d' proxy.conf
    sed -i "s|root .*|location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering $1; }|
        s|^http {|http {\n    upstream origin { server 127.0.0.1:$origin; keepalive 16; }|" proxy.conf
    serve nginx -c "$DIR/proxy.conf" -e "$DIR/error.log" -g 'daemon off;'
    await_port "$proxy_port"
    http=http://127.0.0.1:$proxy_port
}

case_nginx_proxy() {
    origin_nginx
    nginx_proxy_start on
    fetch_through "$http"
}

case_nginx_proxy_unbuffered() {
    origin_nginx
    nginx_proxy_start off
    fetch_through "$http"
}
