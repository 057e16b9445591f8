// close in one thread while another waits for more than is there: that goes on with the connection, and leaves the file alone that has the number next.
#include "dual.h"

static int number, how;
static volatile int reader;

static void *reads(void *with) {
    reader = gettid();
    TRY(recv(number, buf, 16, how));
    say("%.16s", buf);
    return with;
}

// Another file of this number, in which something lies, and then the end.
static void put_another(int ends[2]) {
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    say("the same number: %d", ends[0] == number);
    send_text(ends[1], "theirs");
    OK(shutdown(ends[1], SHUT_WR));
}

static void subject(int fd) {
    number = fd;
    int low = 8, duplicate = -1, ends[2];
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
    for (int pass = 0; pass < 2; pass++) {
        how = pass == 0 ? MSG_PEEK | MSG_WAITALL : 0;
        // In the last pass there is no other descriptor.
        if (pass == 0) duplicate = OK(fcntl(number, F_DUPFD, 100));
        settle(number, 4);
        reader = 0;
        pthread_t thread = start(reads, NULL);
        while (reader == 0) sched_yield();
        wait_asleep(reader);
        OK(close(number));
        put_another(ends);
        tell();
        finish(thread);
        memset(buf, 0, 16);
        TRY(recv(ends[0], buf, 10, 0));
        say("%s", buf);
        TRY(recv(ends[1], buf, 10, MSG_DONTWAIT));
        close(ends[0]);
        close(ends[1]);
        if (pass == 0) {
            TRY(recv(duplicate, buf, 16, 0));
            OK(dup2(duplicate, number));
            close(duplicate);
        }
        tell();
    }
}

static void partner(int fd) {
    for (int pass = 0; pass < 2; pass++) {
        send_text(fd, "some");
        await();
        // The kernel wakes who waits for eight where eight lie there, beside what it has taken.
        send_text(fd, "thing or two");
        await();
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
