# shellcheck shell=bash
declare_case rpc_tirpc 40
declare_case rpc_many 40

# An ONC RPC service and its client, as rpcgen and libtirpc make them; rpcbind has no part in it.
rpc_start() {
    need rpcgen cc pkg-config
    pkg-config --exists libtirpc || { echo "no libtirpc-dev"; exit 77; }
    "$home/servers/rpc/build.sh" . || fail "it does not compile"
    rpc_port=$(port)
    serve ./server "$rpc_port"
    await_port "$rpc_port"
}

# Each procedure, with every size of argument up to 64 kB.
case_rpc_tirpc() {
    rpc_start
    [ "$(client ./client "$rpc_port" check)" = ok ] || fail "a call failed"
    client ./client "$rpc_port" time 0 200 4 200 4096 200 65536 5 >times || fail "a call failed"
}

# Several clients, which the server's poll tells apart.
case_rpc_many() {
    rpc_start
    local turn clients=()
    for turn in 1 2 3 4; do
        client ./client "$rpc_port" check >"said.$turn" &
        clients+=($!)
    done
    wait "${clients[@]}"
    for turn in 1 2 3 4; do [ "$(cat "said.$turn")" = ok ] || fail "client $turn failed"; done
}
