// A send to a peer that does not read: a signal ends it with the part that went, or with EINTR when nothing did.
#include "alarms.h"

static void subject(int fd) {
    fill(buf, sizeof buf, 0);
    size_t total = 0;
    ssize_t sent;
    alarms_begin(0);
    while ((sent = send(fd, buf, sizeof buf, 0)) > 0) total += sent;
    say("send: %s", strerrorname_np(errno));
    while ((sent = write(fd, buf, sizeof buf)) > 0) total += sent;
    say("write: %s", strerrorname_np(errno));
    struct iovec piece = {buf, sizeof buf};
    while ((sent = writev(fd, &piece, 1)) > 0) total += sent;
    say("writev: %s", strerrorname_np(errno));
    alarms_end();
    tell_number(total);
    hear(fd, 2);
}

static void partner(int fd) {
    for (size_t left = await_number(); left > 0;) {
        ssize_t got = recv(fd, buf, left < 65536 ? left : 65536, 0);
        if (got <= 0) die(__LINE__, "recv");
        left -= got;
    }
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
