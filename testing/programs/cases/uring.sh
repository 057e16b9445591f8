# shellcheck shell=bash
declare_case io_uring 30

# A server whose ring is for files, and then for its connection: in shared memory first, on TCP from then on, and no byte differs.
case_io_uring() {
    need cc
    [ -e /usr/include/liburing.h ] || { echo "no liburing.h"; exit 77; }
    cc -O1 -o uring "$home/servers/uring.c" -luring || fail "cc failed"
    local port
    port=$(port)
    serve_once "$DIR/uring" server "$port"
    await_port "$port"
    client "$DIR/uring" client "$port" || fail "the client failed: $(tail -n 1 server.log)"
    wait "$server" || fail "the server failed: $(tail -n 1 server.log)"
}
