# shellcheck shell=bash
declare_case ssh_command 30
declare_case ssh_copies 40
declare_case ssh_forwarding 40

# ssh_start: a server with keys of its own that lets the user of this process in by key.
ssh_start() {
    need sshd ssh ssh-keygen
    ssh_port=$(port)
    ssh-keygen -q -t ed25519 -N '' -f host_key
    ssh-keygen -q -t ed25519 -N '' -f user_key
    cp user_key.pub authorized_keys
    cat >sshd.conf <<END
Port $ssh_port
ListenAddress 127.0.0.1
HostKey $DIR/host_key
PidFile $DIR/sshd.pid
AuthorizedKeysFile $DIR/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
END
    cat >ssh.conf <<END
Host there
    HostName 127.0.0.1
    Port $ssh_port
    User $(id -un)
    IdentityFile $DIR/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $DIR/known_hosts
    StrictHostKeyChecking accept-new
    BatchMode yes
END
    # Where the process that speaks to strangers goes, as root's sshd wants it.
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    serve "$(command -v sshd)" -D -e -f "$DIR/sshd.conf"
    await_port "$ssh_port"
}

# ssh_run COMMAND...: what it prints is the caller's.
ssh_run() {
    client ssh -F ssh.conf there "$@"
}

case_ssh_command() {
    ssh_start
    [ "$(ssh_run echo hello)" = hello ] || fail "hello"
    ! ssh_run exit 7 || fail "exit status"
    random_file sent 8000001
    # Both ways at once, through a program at the other end.
    ssh_run cat <sent >got || fail "ssh: $?"
    same_file sent got
    # A question and its answer, many times.
    coproc TALK { ssh_run cat; }
    local turn answer
    for turn in $(seq 200); do
        echo "turn $turn" >&"${TALK[1]}"
        read -r answer <&"${TALK[0]}"
        [ "$answer" = "turn $turn" ] || fail "turn $turn: $answer"
    done
}

case_ssh_copies() {
    need scp sftp
    ssh_start
    mkdir -p tree/deep
    random_file tree/large 20000003
    random_file tree/deep/small 1000
    client scp -q -F ssh.conf -r tree "there:$DIR/sent" || fail "scp there: $?"
    client scp -q -F ssh.conf -r "there:$DIR/sent" got || fail "scp back: $?"
    # The protocol of before, through the program scp at the other end.
    client scp -q -O -F ssh.conf tree/large "there:$DIR/old" || fail "scp -O: $?"
    same_file tree/large sent/large
    same_file tree/large got/large
    same_file tree/deep/small got/deep/small
    same_file tree/large old
    client sftp -q -F ssh.conf -b - there >sftp.log <<END || fail "sftp: $(tail -n 1 sftp.log)"
cd $DIR
mkdir in
put tree/large in/large
rename in/large in/renamed
get in/renamed got.renamed
ls -l in
END
    same_file tree/large got.renamed
    grep -q 20000003 sftp.log || fail "ls: $(tail -n 1 sftp.log)"
}

# What the tunnel leads to, and who uses it, is under sovia only if both of its ends are: it would meet an end of the tunnel.
by_itself() {
    local ends=$ends
    [ "$ends" = both ] || ends=neither
    "$@"
}

# To a server there (-L), to one here (-R), and to whichever is asked for (-D): four copies at once of what Python serves.
case_ssh_forwarding() {
    need python3 curl
    ssh_start
    local http_port left right socks turn copies=()
    http_port=$(port) left=$(port) right=$(port) socks=$(port)
    mkdir www
    random_file www/large 8000001
    by_itself serve "$(python)" "$home/servers/http_server.py" "$http_port" "$DIR/www"
    await_port "$http_port"
    client ssh -F ssh.conf -N -L "127.0.0.1:$left:127.0.0.1:$http_port" -R "127.0.0.1:$right:127.0.0.1:$http_port" \
        -D "127.0.0.1:$socks" -o ExitOnForwardFailure=yes there >ssh.log 2>&1 &
    local tunnel=$!
    await is_listening "$left"
    await is_listening "$right"
    await is_listening "$socks"
    for turn in 1 2; do
        by_itself client curl -sS -f -o "got.left.$turn" "http://127.0.0.1:$left/large" &
        copies+=($!)
        by_itself client curl -sS -f -o "got.right.$turn" "http://127.0.0.1:$right/large" &
        copies+=($!)
    done
    by_itself client curl -sS -f -o got.socks --socks5 "127.0.0.1:$socks" "http://127.0.0.1:$http_port/large" &
    copies+=($!)
    for turn in "${copies[@]}"; do wait "$turn" || fail "curl: $?"; done
    for turn in left.1 left.2 right.1 right.2 socks; do same_file www/large "got.$turn"; done
    kill "$tunnel"
    wait "$tunnel" || true
}
