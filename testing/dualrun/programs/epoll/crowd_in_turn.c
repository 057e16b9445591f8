// Many members of one set that are used in turn, for so long that a look at each costs more than to be told; then what comes otherwise than in turn.
#define CROWD 300
#include "crowd.h"

enum { LAPS = 130 };

// Answers what comes, on whichever members: so many bytes.
static void answer(int set, int count) {
    struct tally tally = {0};
    while (tally.bytes < count) {
        struct epoll_event events[8];
        int ready = epoll_wait(set, events, 8, -1);
        if (ready < 0 && errno != EINTR) die(__LINE__, "epoll_wait");
        for (int i = 0; i < ready; i++) {
            int before = tally.bytes;
            take(&tally, events[i].data.fd);
            if (tally.bytes != before) send_all(events[i].data.fd, buf, tally.bytes - before);
        }
    }
    say("%d bytes, %lu", tally.bytes, tally.sum);
}

static void ask_in_turn(int laps) {
    for (int at = 0; at < laps * CROWD; at++) {
        int fd = crowd[at % CROWD];
        send_text(fd, "w");
        if (recv_all(fd, buf, 1) != 1) die(__LINE__, "answer");
    }
}

// What comes next, of which so many bytes are taken.
static int hear_next(int set, const char *what, int most) {
    struct epoll_event event;
    OK(epoll_wait(set, &event, 1, -1));
    int fd = event.data.fd;
    ssize_t got = most ? recv(fd, buf, most, MSG_DONTWAIT) : 0;
    say("%s: %s of %d, recv %s", what, events(event.events), index_of(fd),
        got < 0 ? strerrorname_np(errno) : got ? "some" : most ? "end" : "none");
    return fd;
}

static void hear_nothing(int set, const char *what) {
    struct epoll_event event;
    say("%s: %d", what, epoll_wait(set, &event, 1, 30));
}

// A child that does without all of it, while another thread sleeps on the set.
static void *fork_beside(void *with) {
    int *set_and_waiter = with;
    wait_asleep(set_and_waiter[1]);
    pid_t child = OK(fork());
    if (child == 0) {
        close(crowd[15]);
        close(set_and_waiter[0]);
        _exit(0);
    }
    say_child("it closed", child);
    tell();
    return NULL;
}

static void subject(void) {
    int set = new_set(), least = 4;
    gather(set, EPOLLIN | EPOLLRDHUP);
    answer(set, LAPS * CROWD);

    tell();
    hear_next(set, "first of two", 1);
    hear_next(set, "second of two", 1);
    tell();
    answer(set, CROWD);

    tell();
    hear_next(set, "left there", 0);
    hear_next(set, "looked at", 0);
    OK(recv(crowd[0], buf, 1, MSG_PEEK));
    hear_next(set, "taken", 1);
    tell();
    hear_next(set, "once more", 1);
    tell();
    answer(set, CROWD);

    // Taken, and more comes before the next wait.
    tell();
    hear_next(set, "before", 1);
    tell();
    await();
    hear_next(set, "between", 1);

    // Taken, and then this end changes what there is.
    tell();
    hear_next(set, "with an end", 1);
    OK(shutdown(crowd[6], SHUT_RD));
    hear_next(set, "deaf", 1);
    OK(control(set, EPOLL_CTL_DEL, crowd[6], 0));
    tell();
    hear_next(set, "with a number", 1);
    OK(setsockopt(crowd[7], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    tell();
    await();
    hear_nothing(set, "too little");
    tell();
    hear_next(set, "enough", 8);
    tell();
    hear_next(set, "with room", 1);
    OK(control(set, EPOLL_CTL_MOD, crowd[8], EPOLLIN | EPOLLOUT));
    hear_next(set, "room", 0);
    OK(control(set, EPOLL_CTL_MOD, crowd[8], EPOLLIN | EPOLLONESHOT));
    tell();
    hear_next(set, "once", 1);
    tell();
    await();
    hear_nothing(set, "not twice");
    OK(control(set, EPOLL_CTL_MOD, crowd[8], EPOLLIN));
    hear_next(set, "armed again", 1);

    // Out of the set, where a call waits for it, and back.
    OK(control(set, EPOLL_CTL_DEL, crowd[9], 0));
    tell();
    hear(crowd[9], 1);
    OK(control(set, EPOLL_CTL_ADD, crowd[9], EPOLLIN | EPOLLET));
    tell();
    hear_next(set, "by edges", 1);
    hear_nothing(set, "no edge");
    tell();
    hear_next(set, "an edge", 8);

    // In another set too, and in poll.
    int other = set_of(crowd[10], EPOLLIN);
    tell();
    hear_next(set, "of two sets", 0);
    hear_next(other, "the other set", 1);
    OK(close(other));
    tell();
    say_poll("poll", crowd[11], POLLIN, -1);
    hear_next(set, "and the set", 1);

    int set_and_waiter[] = {set, gettid()};
    pthread_t beside = start(fork_beside, set_and_waiter);
    hear_next(set, "beside a fork", 1);
    finish(beside);

    // A child that has it, too.
    pid_t child = OK(fork());
    if (child == 0) _exit(hear_next(set, "a child", 0) == crowd[12] ? 0 : 1);
    tell();
    say_child("it heard", child);
    hear_next(set, "its parent", 1);
    tell();
    hear_next(set, "shut down", 1);
    tell();
    OK(control(set, EPOLL_CTL_DEL, crowd[13], 0));
    hear_next(set, "closed", 1);
    tell();
}

static void partner(void) {
    gather(-1, 0);
    ask_in_turn(LAPS);

    await();
    send_text(crowd[0], "ab");
    await();
    ask_in_turn(1);

    await();
    send_text(crowd[0], "w");
    await();
    send_text(crowd[0], "w");
    await();
    ask_in_turn(1);

    await();
    send_text(crowd[5], "w");
    await();
    send_text(crowd[5], "w");
    tell();

    await();
    send_text(crowd[6], "w");
    await();
    send_text(crowd[7], "w");
    await();
    send_text(crowd[7], "ab");
    tell();
    await();
    send_text(crowd[7], "cd");
    await();
    send_text(crowd[8], "w");
    await();
    send_text(crowd[8], "w");
    await();
    send_text(crowd[8], "w");
    tell();

    await();
    send_text(crowd[9], "w");
    await();
    send_text(crowd[9], "ab");
    await();
    send_text(crowd[9], "cd");

    await();
    send_text(crowd[10], "w");
    await();
    send_text(crowd[11], "w");
    await();
    send_text(crowd[15], "w");
    await();
    send_text(crowd[12], "w");
    await();
    OK(shutdown(crowd[13], SHUT_WR));
    // Of two that end at once either may come first.
    await();
    OK(close(crowd[14]));
    await();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
