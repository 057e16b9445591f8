# shellcheck shell=bash
declare_case ftp_passive 30
declare_case ftp_active 30
declare_case ftp_lftp 40
declare_case ftp_inetd 30
declare_case ftp_as_installed 30 short

ftp_login="anonymous nobody"

# Files to serve.
ftp_tree() {
    mkdir -p site/in site/many empty
    random_file site/large 20000003
    random_file site/middle 100000
    : >site/nothing
    printf 'hello\n' >site/small
    touch site/many/file{001..300}
    # Whoever it becomes may write there, and not at the root of what it sees.
    chmod 755 site site/many empty
    chmod 777 site/in
}

# ftp_site [LINE...]: files to serve, and a configuration with these lines more.
ftp_site() {
    need vsftpd
    ftp_port=$(port)
    ftp_tree
    sed "s|@DIR@|$DIR|g; s|@PORT@|$ftp_port|g" "$home/cases/vsftpd.conf" >vsftpd.conf
    printf '%s\n' "$@" >>vsftpd.conf
}

# A server that stays who it is, and where it is. Its sandbox and its chroot end what sovia does: see docs/compat/vsftpd.md.
ftp_start() {
    ftp_site run_as_launching_user=YES seccomp_sandbox=NO
    serve vsftpd "$DIR/vsftpd.conf"
    await_port "$ftp_port"
}

# tnftp OPTIONS, with its commands on standard input; what it says is in tnftp.log.
tnftp_run() {
    need tnftp
    { echo "user $ftp_login"; cat; echo quit; } >commands
    client tnftp -in "$@" 127.0.0.1 "$ftp_port" <commands >tnftp.log 2>&1 || fail "tnftp: $(tail -n 1 tnftp.log)"
    ! grep -E '^[45][0-9][0-9][ -]' tnftp.log || fail "$(grep -m 1 -E '^[45][0-9][0-9][ -]' tnftp.log)"
}

# Down, up, and lists; with the options of tnftp that say how.
there_and_back() {
    tnftp_run "$@" <<END
binary
get large got.large
get small got.small
get nothing got.nothing
nlist many got.list
ls
put site/large in/large
put site/middle in/middle
rename in/middle in/renamed
get in/renamed got.renamed
mkdir in/new
END
    same_file site/large got.large
    same_file site/small got.small
    same_file site/nothing got.nothing
    same_file <(printf 'many/file%03d\n' {1..300}) <(tr -d '\r' <got.list | sort)
    same_file site/large site/in/large
    same_file site/middle site/in/renamed
    same_file site/middle got.renamed
    [ -d site/in/new ] || fail "no new folder"
    grep -q ' large' tnftp.log || fail "ls shows nothing"
    carried_data
}

ftp_upgrades=3

# Where both are under sovia, not only the control connection left TCP, but those of both large files.
carried_data() {
    [ "$ends" != both ] || [ "$(wc -l <client.upgrades)" -ge "$ftp_upgrades" ] || fail "data went over TCP: $(wc -l <client.upgrades) upgrades"
}

case_ftp_passive() {
    ftp_start
    there_and_back -p
}

case_ftp_active() {
    ftp_start
    there_and_back -A
}

# Several connections at once, a part of a file, the rest of one, both modes.
ftp_by_lftp() {
    need lftp
    random_file site/in/left 3000001
    head -c 1000000 site/in/left >got.left
    client lftp -c "
        set cmd:fail-exit yes; set net:max-retries 1; set net:timeout 10; set ftp:ssl-allow no
        open -u ${ftp_login/ /,} ftp://127.0.0.1:$ftp_port
        get -c in/left -o got.left
        pget -n 4 large -o got.large
        cls -1 many > got.list
        mirror --parallel=4 . got
        set ftp:passive-mode off
        get middle -o got.middle
        put site/large -o in/large
        mput -O in site/middle site/small
    " >lftp.log 2>&1 || fail "lftp: $(tail -n 1 lftp.log)"
    same_file site/in/left got.left
    same_file site/large got.large
    same_file site/middle got.middle
    same_file <(printf 'many/file%03d\n' {1..300}) got.list
    local file
    for file in large middle small nothing in/left; do same_file site/$file got/$file; done
    for file in large middle small; do same_file site/$file site/in/$file; done
    carried_data
}

case_ftp_lftp() {
    ftp_start
    ftp_by_lftp
}

# inetd makes the control connection, and vsftpd begins with it as its standard input.
case_ftp_inetd() {
    ftp_site run_as_launching_user=YES seccomp_sandbox=NO
    sed -i '/^listen/d; /^background/d' vsftpd.conf
    inetd_start "$ftp_port" vsftpd "$DIR/vsftpd.conf"
    there_and_back -p
}

# As Debian configures it: root gives way to `ftp`, in a chroot, with a seccomp filter.
case_ftp_as_installed() {
    [ "$(id -u)" = 0 ] || { echo "not root"; exit 77; }
    ftp_site
    serve vsftpd "$DIR/vsftpd.conf"
    await_port "$ftp_port"
    need tnftp
    tnftp_run -p <<END
binary
get large got.large
nlist many got.list
ls
put site/large in/large
END
    same_file site/large got.large
    same_file <(printf 'many/file%03d\n' {1..300}) <(tr -d '\r' <got.list | sort)
    same_file site/large site/in/large
}
