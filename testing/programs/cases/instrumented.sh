# shellcheck shell=bash
declare_case sanitized_address 30
declare_case sanitized_thread 60
declare_case valgrind 90

# Programs that watch their own memory: they start, see the same bytes, and complain of nothing.
instrumented_echo() {
    local port
    port=$(port)
    serve_once "${starter[@]}" "$DIR/echo" server "$port"
    await_port "$port"
    client "${starter[@]}" "$DIR/echo" client "$port" >client.log 2>&1 || fail "the client failed: $(tail -n 1 client.log)"
    wait "$server" || fail "the server failed: $(tail -n 1 server.log)"
    cat client.log
    if grep -E 'ERROR|WARNING|==[0-9]+==' client.log server.log; then fail "a complaint"; fi
}

build_echo() {
    need cc
    cc -O1 -g "$@" -o echo "$home/servers/echo.c" -lpthread 2>cc.log || { echo "cc $*: $(head -n 1 cc.log)"; exit 77; }
}

case_sanitized_address() {
    local starter=()
    build_echo -fsanitize=address,undefined
    instrumented_echo
}

# Its map of memory does not suit every kernel's random addresses.
case_sanitized_thread() {
    local starter=(setarch -R)
    need setarch
    build_echo -fsanitize=thread
    instrumented_echo
}

case_valgrind() {
    local starter=(valgrind -q --error-exitcode=9)
    need valgrind
    build_echo
    instrumented_echo
}
