# shellcheck shell=bash
declare_case iperf3_forward 20
declare_case iperf3_reverse 20
declare_case iperf3_parallel 20
declare_case iperf3_both_ways 20
declare_case iperf3_small_writes 20

# iperf3_run OPTIONS: a client with them; fails if it moved less than 1 MB, or took in other than was sent.
iperf3_run() {
    need iperf3 python3
    local port
    port=$(port)
    serve iperf3 -s -B 127.0.0.1 -p "$port" --forceflush
    await_port "$port"
    client iperf3 -c 127.0.0.1 -p "$port" --json "$@" >iperf3.json || fail "iperf3: $(grep '"error"' iperf3.json)"
    python3 - iperf3.json <<'PYTHON' || exit 1
import json, sys
report = json.load(open(sys.argv[1]))
end = report["end"]
for suffix in ["", "_bidir_reverse"]:
    if "sum_sent" + suffix not in end:
        continue
    sent, received = (end[which + suffix]["bytes"] for which in ("sum_sent", "sum_received"))
    print(sent, "bytes sent,", received, "received")
    # What is under way when the time is up is not waited for.
    if received < 1_000_000 or received > sent or sent - received > 64_000_000:
        sys.exit(f"{sent} bytes sent, {received} received")
PYTHON
}

case_iperf3_forward() { iperf3_run -t 1; }
case_iperf3_reverse() { iperf3_run -t 1 -R; }
case_iperf3_parallel() { iperf3_run -t 1 -P 4; }
case_iperf3_both_ways() { iperf3_run -t 1 --bidir; }
case_iperf3_small_writes() { iperf3_run -n 20M -l 1000 -N; }
