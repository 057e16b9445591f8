# shellcheck shell=bash
# For scripts that measure one server by themselves: a folder and a server that go when they do, and a port that nobody has. To be sourced.
folder=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null || true; fi
    rm -rf "$folder"
}
trap stop EXIT

# need PROGRAM...
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || { echo "${0##*/}: $program is not installed" >&2; exit 1; }
    done
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

# take_port DEFAULT: PORT, if that is set.
take_port() {
    port=${PORT:-$1}
    if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]]; then
        echo "${0##*/}: PORT=$port is no port" >&2
        exit 2
    fi
    if listens; then
        echo "${0##*/}: somebody serves at port $port: set PORT to another" >&2
        exit 1
    fi
}
