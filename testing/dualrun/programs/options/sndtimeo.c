// SO_SNDTIMEO: a send to a peer that does not read gives up, after a part or with EAGAIN.
#include "dual.h"

static void subject(int fd) {
    struct timeval some = {0, 30000};
    OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &some, sizeof some));
    fill(buf, sizeof buf, 0);
    ssize_t sent, total = 0;
    while ((sent = send(fd, buf, sizeof buf, 0)) > 0) total += sent;
    say("%s", strerrorname_np(errno));
    while ((sent = write(fd, buf, 1000)) > 0) total += sent;
    say("%s", strerrorname_np(errno));
    tell_number(total);
    TRY(recv(fd, buf, 2, 0)); // has no timeout
    tell();
}

static void partner(int fd) {
    ssize_t left = await_number(), at = 0;
    while (left > 0) {
        ssize_t got = recv(fd, buf, left < 65536 ? left : 65536, 0);
        if (got <= 0) die(__LINE__, "recv");
        left -= got;
        at += got;
    }
    send_text(fd, "ok");
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
