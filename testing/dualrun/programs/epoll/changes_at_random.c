// CTL_ADD, CTL_MOD and CTL_DEL of two connections at random, with each kind of registration, while bytes come and are taken; looked at after each. In
// the middle programs that know nothing of us have them; at last the other end of one shuts down.
#include "epoll.h"

enum { STEPS = 600, SHUT = 8, OVER };

static unsigned random_below(unsigned below) {
    static uint64_t state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

// Both are told of at once, or one after the other: in which order is the kernel's business.
static void look(int step, const char *what, int set) {
    struct epoll_event found[2];
    unsigned bits[2] = {0};
    int count = epoll_wait(set, found, 2, 0);
    if (count < 0) die(__LINE__, "epoll_wait");
    for (int i = 0; i < count; i++) bits[found[i].data.fd & 1] = found[i].events;
    say("%d: %s: %d, %s, %s", step, what, count, events(bits[0]), events(bits[1]));
}

static unsigned wanted(int operation) {
    static const unsigned interest[] = {0, EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLRDHUP, EPOLLOUT | EPOLLPRI};
    static const unsigned flags[] = {0, 0, 0, EPOLLONESHOT, EPOLLET, EPOLLEXCLUSIVE};
    unsigned flag = flags[random_below(6)], mask = interest[random_below(6)];
    // Where that is refused is `exclusive`.
    if (flag == EPOLLEXCLUSIVE && (operation != EPOLL_CTL_ADD || mask & (EPOLLRDHUP | EPOLLPRI))) flag = 0;
    return mask | flag;
}

static void change(int step, int set, const int fds[2]) {
    static const int operations[] = {EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    static const char *const names[] = {"add", "mod", "del"};
    int which = random_below(3), one = random_below(2);
    struct epoll_event event = {.events = wanted(operations[which]), .data.fd = one};
    int result = epoll_ctl(set, operations[which], fds[one], &event);
    say("%d: %s %d, %s%s%s%s: %s", step, names[which], one, events(event.events & 0xffff),
        event.events & EPOLLET ? " edge" : "", event.events & EPOLLONESHOT ? " once" : "",
        event.events & EPOLLEXCLUSIVE ? " exclusive" : "", result < 0 ? strerrorname_np(errno) : "done");
}

static void tell_partner(uint32_t what) {
    tell_number(what);
    await();
}

// To a program that knows nothing of us, which is over at once.
static void pass_on(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        OK(fcntl(fd, F_SETFD, 0));
        OK(unsetenv("LD_PRELOAD"));
        OK(execl("/bin/true", "true", NULL));
    }
    OK(waitpid(child, NULL, 0));
}

static void subject(void) {
    int fds[2], set = new_set(), have[2] = {0};
    connected_twice(fds);
    for (int step = 0; step < STEPS; step++) {
        int one = random_below(2);
        switch (random_below(8)) {
        case 0:
            tell_partner(one);
            settle(fds[one], have[one] += 4);
            look(step, "bytes came", set);
            break;
        case 1:
            if (have[one] > 0) {
                OK(recv(fds[one], buf, 4, 0));
                have[one] -= 4;
                look(step, "bytes were taken", set);
            }
            break;
        case 2:
            OK(send(fds[one], "answer", 6, MSG_NOSIGNAL));
            look(step, "bytes were sent", set);
            break;
        default:
            change(step, set, fds);
            look(step, "changed", set);
        }
        if (step == STEPS / 2) {
            // What lies there would come again only when the other end does something.
            for (one = 0; one < 2; one++)
                for (; have[one] > 0; have[one] -= 4) OK(recv(fds[one], buf, 4, 0));
            for (one = 0; one < 2; one++)
                if (control(set, EPOLL_CTL_ADD, fds[one], EPOLLOUT) < 0) OK(control(set, EPOLL_CTL_MOD, fds[one], EPOLLOUT));
            OK(control(set, EPOLL_CTL_MOD, fds[0], EPOLLIN));
            pass_on(fds[1]);
            look(step, "passed on", set);
            OK(control(set, EPOLL_CTL_MOD, fds[0], EPOLLOUT));
            look(step, "the other", set);
            OK(control(set, EPOLL_CTL_MOD, fds[1], EPOLLIN));
            pass_on(fds[0]);
            OK(control(set, EPOLL_CTL_DEL, fds[1], 0));
            OK(control(set, EPOLL_CTL_ADD, fds[1], EPOLLIN | EPOLLOUT));
            look(step, "both passed on", set);
            OK(control(set, EPOLL_CTL_MOD, fds[0], EPOLLIN));
            look(step, "one for input only", set);
        }
    }
    tell_partner(SHUT);
    settle_end(fds[0]);
    for (int step = 0; step < 60; step++) {
        change(step, set, fds);
        look(step, "after the end", set);
    }
    tell_number(OVER);
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    for (;;) {
        int64_t what = await_number();
        if (what < 0 || what == OVER) return;
        if (what < 2) send_text(fds[what], "data");
        if (what == SHUT) OK(shutdown(fds[0], SHUT_WR));
        tell();
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
