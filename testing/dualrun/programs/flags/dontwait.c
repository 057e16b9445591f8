// MSG_DONTWAIT on a blocking socket, in both directions; the socket stays blocking.
#include "dual.h"

static void subject(int fd) {
    TRY(recv(fd, buf, 10, MSG_DONTWAIT));
    meet();
    settle(fd, 5);
    TRY(recv(fd, buf, 10, MSG_DONTWAIT));
    TRY(recv(fd, buf, 10, MSG_DONTWAIT));
    fill(buf, sizeof buf, 0);
    size_t sent = 0;
    // Full is what stays so when the last acknowledgement has come.
    for (int refused = 0; refused < 2;) {
        ssize_t now = send(fd, buf, 65536, MSG_DONTWAIT);
        if (now > 0) sent += now, refused = 0;
        else if (++refused < 2) is_room_to_come(fd);
    }
    say("full: %s, something sent: %d", strerrorname_np(errno), sent > 0);
    TRY(send(fd, "x", 1, MSG_DONTWAIT));
    TRY((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    tell_number(sent);
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    meet();
    send_text(fd, "hello");
    for (size_t left = await_number(); left > 0;) {
        ssize_t got = recv(fd, buf, left < sizeof buf ? left : sizeof buf, 0);
        if (got <= 0) die(__LINE__, "recv");
        left -= got;
    }
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    send_text(fd, "!");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
