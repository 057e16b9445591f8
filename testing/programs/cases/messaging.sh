# shellcheck shell=bash
declare_case erlang 40
declare_case zeromq 40
declare_case openmpi 60

# Two nodes, by way of epmd; their distribution's connection.
case_erlang() {
    need erl erlc epmd
    mkdir home
    export HOME=$DIR/home ERL_EPMD_PORT
    ERL_EPMD_PORT=$(port)
    erlc -o . "$home/servers/echo.erl" || fail "erlc failed"
    serve epmd -address 127.0.0.1
    await_port "$ERL_EPMD_PORT"
    serve_once erl -noinput -name server@127.0.0.1 -setcookie secret -kernel inet_dist_use_interface '{127,0,0,1}' -s echo server
    await grep -q ready server.log
    client erl -noinput -name client@127.0.0.1 -setcookie secret -s echo client server@127.0.0.1 >client.log 2>&1 || fail "$(head -n 1 client.log)"
    grep -q "^whole" client.log || fail "$(tail -n 1 client.log)"
    wait "$server" || fail "the server ended with $?"
}

case_zeromq() {
    "$(python)" -c 'import zmq' 2>/dev/null || { echo "no zmq"; exit 77; }
    local port
    port=$(port)
    serve_once "$(python)" "$home/servers/zeromq.py" server "$port"
    await_port "$port"
    client "$(python)" "$home/servers/zeromq.py" client "$port" >client.log 2>&1 || fail "$(tail -n 1 client.log)"
    wait "$server" || fail "the server ended with $?"
}

# mpirun starts all; those of one rank are the server's, the others the client's. Two processes, and four on as many CPUs as there are.
case_openmpi() {
    need mpirun mpicc
    mpicc -O1 -o mpi "$home/servers/mpi.c" || fail "mpicc failed"
    local server=() other=() each
    case $ends in both | server) server=(env "SOVIA_TRACE_UPGRADE=$DIR/server.upgrades" "$SOVIA" run --) ;; esac
    case $ends in both | client) other=(env "SOVIA_TRACE_UPGRADE=$DIR/client.upgrades" "$SOVIA" run --) ;; esac
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$DIR
    # Where both ranks of one end are under sovia, so is the connection between them.
    local ranks=(1)
    case $ends in neither | both) ranks=(1 "${ranks_each:-2}") ;; esac
    for each in "${ranks[@]}"; do
        mpirun --oversubscribe --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo \
            -np "$each" "${server[@]}" ./mpi : -np "$each" "${other[@]}" ./mpi >mpi.log 2>&1 || fail "$(grep -m 1 . mpi.log)"
        grep -q "^whole" mpi.log || fail "$(tail -n 1 mpi.log)"
    done
}
