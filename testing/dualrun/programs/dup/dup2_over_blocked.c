// dup2 over a number on which another thread waits: the thread goes on waiting on the old connection, natively. What it gets
// there it returns, and the number is the new connection at once.
#include "dual.h"

static int number;
static volatile int reader;

static void *reads(void *with) {
    reader = gettid();
    char text[10];
    TRY(recv(number, text, 4, 0));
    say("%.4s", text);
    return with;
}

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    number = fds[0];
    int kept = OK(dup(number)); // or its peer would see the end only after the recv
    pthread_t thread = start(reads, NULL);
    while (reader == 0) sched_yield();
    wait_asleep(reader);
    OK(dup2(fds[1], number));
    send_text(number, "second");
    tell();
    finish(thread);
    OK(close(kept));
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    hear(fds[1], 6);
    await();
    send_text(fds[0], "wake");
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
