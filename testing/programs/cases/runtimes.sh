# shellcheck shell=bash
declare_case node_http 40 long
declare_case node_both 40 long
declare_case node_io_uring 40 long tcp
declare_case java_http 60 long
declare_case java_both 60 long
declare_case go_http 90 long tcp
declare_case go_with_c 120 long tcp

# web_start COMMAND...: a server that is started with a port and a folder, and answers as servers/asyncio_server.py does.
web_start() {
    local web_port
    web_port=$(port)
    mkdir www
    random_file www/small 1000
    random_file www/middle 100000
    random_file www/large 20000003
    serve "$@" "$web_port" "$DIR/www"
    await_port "$web_port"
    url=http://127.0.0.1:$web_port
}

# Files and digests by curl, and under load.
exchange_http() {
    downloads
    uploads
    need wrk
    client wrk -t 1 -c 8 -d 1 --timeout 5s "$url/small" >wrk.log || fail "wrk: $(tail -n 1 wrk.log)"
    ! grep -E 'Socket errors|Non-2xx' wrk.log || fail "$(grep -E 'Socket errors|Non-2xx' wrk.log)"
}

case_node_http() {
    need node
    web_start node "$home/servers/http.js"
    exchange_http
}

case_node_both() {
    need node
    web_start node "$home/servers/http.js"
    client node "$home/clients/http.js" "$url" www || fail "a wrong answer"
}

# libuv may register what it waits for by io_uring, which goes past the C library.
case_node_io_uring() {
    export UV_USE_IO_URING=1
    case_node_both
}

case_java_http() {
    need java javac
    web_start java "$home/servers/Http.java"
    exchange_http
}

case_java_both() {
    need java javac
    web_start java "$home/servers/Http.java"
    client java "$home/clients/Http.java" "$url" www || fail "a wrong answer"
}

# go_build OUTPUT: a program without a dynamic linker, or with CGO_ENABLED=1 one with.
go_build() {
    need go
    HOME=$DIR GOCACHE=$WORK/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o "$1" "$home/servers/http.go" >build.log 2>&1 ||
        fail "go build: $(tail -n 1 build.log)"
}

# It works, stays on TCP, and is told why.
case_go_http() {
    CGO_ENABLED=0 go_build http
    web_start "$DIR/http"
    exchange_http
    says 'it is statically linked'
}

case_go_with_c() {
    need gcc
    CGO_ENABLED=1 go_build http
    web_start "$DIR/http"
    exchange_http
    says 'it is a Go program, which calls the kernel directly'
}

says() {
    [[ $ends != both && $ends != server ]] || grep -q "not over Virtual Interfaces: .*$1" server.log || fail "not said: $1"
}
