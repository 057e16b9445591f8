# shellcheck shell=bash
declare_case ftpd_passive 30
declare_case ftpd_active 30
declare_case ftpd_lftp 40
declare_case ftpd_other_user 30

# NetKit's FTP server, begun by inetd for each session: its lists are what /bin/ls prints, for which it forks. It knows accounts only: ftpd_start UID makes
# one of that number, which nobody outside the case sees.
ftpd_start() {
    need in.ftpd tnftp inetd unshare perl
    unshare -m true 2>/dev/null || { echo "no mount namespace of its own"; exit 77; }
    ftp_port=$(port)
    ftp_login="visitor secret"
    ftp_tree
    mkdir site/more
    touch site/more/file-{0001..3000}
    chown -R "$1" site
    mkdir pam.d
    cp /etc/pam.d/* pam.d/
    # As the package has it.
    printf '%s\n' 'auth sufficient pam_ftp.so' '@include common-auth' '@include common-account' '@include common-session' >pam.d/ftp
    {
        cat /etc/passwd
        # shellcheck disable=SC2016 # perl's
        echo "visitor:$(perl -e 'print crypt("secret", q($6$sovia$))'):$1:$(id -g "$1"):one of the case:$DIR/site:/bin/sh"
    } >passwd
    echo "127.0.0.1:$ftp_port stream tcp nowait root $(command -v in.ftpd) in.ftpd" >inetd.conf
    : >nowhere
    cat >accounts.sh <<END
mount --bind "$DIR/passwd" /etc/passwd
mount --bind "$DIR/pam.d" /etc/pam.d
[ ! -e /var/log/wtmp ] || mount --bind "$DIR/nowhere" /var/log/wtmp
exec "\$@"
END
    serve unshare -m sh -e accounts.sh inetd -iE "$DIR/inetd.conf"
    await_port "$ftp_port"
}

# A list is what /bin/ls says. Its times are of the zone and the language of the server, which are ours.
ftpd_lists() {
    tnftp_run "$@" <<END
ls more got.more
ls in/none got.none
get small got.again
END
    same_file <(ls -lA site/more) <(tr -d '\r' <got.more)
    same_file site/small got.again
}

case_ftpd_passive() {
    ftpd_start 0
    there_and_back -p
    ftpd_lists -p
}

case_ftpd_active() {
    ftpd_start 0
    there_and_back -A
    ftpd_lists -A
}

case_ftpd_lftp() {
    ftpd_start 0
    ftp_by_lftp
}

# It takes the account's user as its effective one, and the control connection is root's: that stays on TCP.
case_ftpd_other_user() {
    ftp_upgrades=2
    ftpd_start "$(id -u nobody)"
    there_and_back -p
    ftpd_lists -p
}
