# shellcheck shell=bash
declare_case netpipe_integrity 30
declare_case netpipe_latency 30
declare_case netpipe_both_ways 30

# netpipe_run OPTIONS: both ends with them; the receiver ends with the transmitter.
netpipe_run() {
    need NPtcp
    local port
    port=$(port)
    serve_once NPtcp -P "$port" "$@"
    await_port "$port"
    client NPtcp -h 127.0.0.1 -P "$port" -o np.out "$@" >transmitter.log 2>&1 || fail "transmitter: $(tail -n 1 transmitter.log)"
    wait "$server" || fail "receiver: $(tail -n 1 server.log)"
}

case_netpipe_integrity() {
    netpipe_run -i -n 20 -u 300000
    [ "$(grep -c 'Integrity check passed' transmitter.log)" -gt 30 ] || fail "few checks: $(tail -n 1 transmitter.log)"
    ! grep -i 'check failed' server.log transmitter.log || fail "$(grep -hi 'check failed' server.log transmitter.log | head -n 1)"
}

case_netpipe_latency() {
    netpipe_run -n 50 -u 1000000
    [ "$(wc -l <np.out)" -gt 50 ] || fail "few sizes: $(wc -l <np.out)"
}

# Not -s, with which it loses its own synchronisation now and then, over TCP as well.
case_netpipe_both_ways() {
    netpipe_run -2 -n 50 -u 1000000
    [ "$(wc -l <np.out)" -gt 50 ] || fail "few sizes: $(wc -l <np.out)"
}
