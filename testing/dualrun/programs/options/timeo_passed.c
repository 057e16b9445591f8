// SO_RCVTIMEO and SO_SNDTIMEO of less than no time: calls do not wait. Of none at all they do, though the kernel says the same of both.
#include "dual.h"
#include <sys/sendfile.h>

static void set(int fd, int name, long seconds) {
    struct timeval time = {seconds, 0}, told;
    TRY(setsockopt(fd, SOL_SOCKET, name, &time, sizeof time));
    OK(getsockopt(fd, SOL_SOCKET, name, &told, &(socklen_t){sizeof told}));
    say("%ld s, %ld us", (long)told.tv_sec, (long)told.tv_usec);
}

static void subject(int fd) {
    int file = OK(open("/dev/shm", O_TMPFILE | O_RDWR, 0600));
    fill(buf, sizeof buf, 0);
    OK(write(file, buf, 100000));
    set(fd, SO_RCVTIMEO, -1);
    TRY(recv(fd, buf, 5, 0));
    tell();
    settle(fd, 3);
    TRY(recv(fd, buf, 5, MSG_WAITALL));
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){10}, sizeof(int)));
    tell();
    settle(fd, 3);
    TRY(recv(fd, buf, 15, 0));
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int)));
    set(fd, SO_RCVTIMEO, 0);
    tell_number(gettid());
    TRY(recv(fd, buf, 5, MSG_WAITALL));

    set(fd, SO_SNDTIMEO, -1);
    fill(buf, sizeof buf, 0);
    ssize_t sent, total = 0;
    while ((sent = send(fd, buf, sizeof buf, 0)) > 0) total += sent;
    say("send: %s", strerrorname_np(errno));
    while ((sent = sendfile(fd, file, &(off_t){0}, 100000)) > 0) total += sent;
    say("sendfile: %s", strerrorname_np(errno));
    set(fd, SO_SNDTIMEO, 0);
    tell_number(total);
    tell_number(gettid());
    TRY(send(fd, buf, sizeof buf, 0));
    hear(fd, 2);
}

static void partner(int fd) {
    await();
    send_text(fd, "abc");
    await();
    send_text(fd, "def");
    wait_asleep(await_number());
    send_text(fd, "five.");
    ssize_t left = await_number() + sizeof buf;
    wait_asleep(await_number());
    while (left > 0) {
        ssize_t got = recv(fd, buf, left < 65536 ? left : 65536, 0);
        if (got <= 0) die(__LINE__, "recv");
        left -= got;
    }
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
