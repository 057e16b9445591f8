// What comes before the mark is thrown away, in small pieces, as after telnet's synch.
#include "dual.h"

static void subject(int fd) {
    int dropped = 0;
    meet();
    say_poll("urgent", fd, POLLPRI, -1);
    settle(fd, 6);
    for (int at; (at = sockatmark(fd)) != 1;) {
        ssize_t got = recv(fd, buf, 4, 0);
        if (at < 0 || got <= 0) die(__LINE__, "to the mark");
        dropped += got;
    }
    say("before the mark: %d", dropped);
    TRY(recv(fd, buf, 100, MSG_OOB));
    hear(fd, 5);
    TRY(sockatmark(fd));
    TRY(sockatmark(-1));
    tell();
}

static void partner(int fd) {
    meet();
    send_text(fd, "before");
    TRY(send(fd, "!", 1, MSG_OOB));
    send_text(fd, "after");
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
