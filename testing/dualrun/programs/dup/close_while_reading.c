// close in one thread while another waits in recv: the recv goes on, and ends with what the peer sends.
#include "dual.h"

static int number;
static volatile int reader;

static void *reads(void *with) {
    reader = gettid();
    TRY(recv(number, buf, 4, 0));
    say("%.4s", buf);
    return with;
}

static void subject(int fd) {
    number = fd;
    pthread_t thread = start(reads, NULL);
    while (reader == 0) sched_yield();
    wait_asleep(reader);
    OK(close(number));
    tell();
    finish(thread);
    TRY(recv(number, buf, 4, 0));
    tell();
}

static void partner(int fd) {
    await();
    send_text(fd, "wake");
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
