# shellcheck shell=bash
declare_case mosquitto_messages 30
declare_case mosquitto_large 30

mosquitto_start() {
    need mosquitto mosquitto_pub mosquitto_sub
    mosquitto_port=$(port)
    # As root it becomes nobody.
    printf 'listener %d 127.0.0.1\nallow_anonymous true\nuser nobody\nmax_queued_messages 0\nmax_inflight_messages 100\nlog_dest stderr\nlog_type subscribe\n' "$mosquitto_port" >mosquitto.conf
    serve mosquitto -c "$DIR/mosquitto.conf"
    await_port "$mosquitto_port"
}

# subscribe FILE COUNT QUALITY TOPIC: in the background, as $process; it ends after so many messages.
subscribe() {
    start_client mosquitto_sub -p "$mosquitto_port" -i "sub-$1" -q "$3" -t "$4" -C "$2" -R >"$1"
    await grep -q "sub-$1 $3 $4" server.log
}

publish() {
    client mosquitto_pub -p "$mosquitto_port" "$@"
}

# Each of two subscribers gets each message once, in order: acknowledged (QoS 1), in four steps (QoS 2), or neither.
case_mosquitto_messages() {
    mosquitto_start
    local quality name process subscribers
    seq 1500 | awk '{ v = ""; n = $1 % 100; while (length(v) < n) v = v $1; print "message " $1 " " v }' >wanted
    for quality in 0 1 2; do
        subscribers=()
        for name in one two; do
            subscribe "$name.$quality" 1500 $quality "news/#"
            subscribers+=("$process")
        done
        publish -q $quality -t news/today -l <wanted
        wait "${subscribers[@]}"
        for name in one two; do
            same_file wanted "$name.$quality"
        done
    done
}

# 20 MB in one message, kept for who comes later.
case_mosquitto_large() {
    mosquitto_start
    random_file large 20000000
    publish -q 1 -r -t large -f large
    client mosquitto_sub -p "$mosquitto_port" -q 1 -t large -C 1 -N >got
    same_file large got
}
