// A thread sleeps in recv while another closes the descriptor, whose number becomes another connection's at once: the thread hears of its own
// connection only, and takes nothing of the other.
#include "dual.h"

static int number;
static volatile int reader;

static void *reads(void *with) {
    reader = gettid();
    char text[10];
    TRY(recv(number, text, sizeof text, 0));
    return with;
}

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    number = fds[0];
    pthread_t thread = start(reads, NULL);
    while (reader == 0) sched_yield();
    wait_asleep(reader);
    OK(close(number));
    say("the same number: %d", dup(fds[1]) == number);
    tell();
    finish(thread);
    tell();
    hear(number, 5);
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    await();
    send_text(fds[1], "other");
    OK(shutdown(fds[0], SHUT_WR));
    await();
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
