// Members of sets that report once, and ends alone, before and after the connection may have left TCP: each end is told once, and not again before it is asked
// for.
#include "epoll.h"

enum { WAIT_MS = 10000, NOT_FOR_MS = 20 };

static const unsigned kinds[] = {EPOLLRDHUP | EPOLLONESHOT, EPOLLRDHUP | EPOLLONESHOT | EPOLLET, EPOLLONESHOT, EPOLLONESHOT | EPOLLET};
enum { KINDS = 4 };

static int sets[KINDS];

static void look(const char *when, int half, int timeout) {
    for (int i = 0; i < KINDS; i++) {
        char what[64];
        snprintf(what, sizeof what, "%s, %s%s", when, i < 2 ? "half an end" : "the end", i % 2 ? ", by edges" : "");
        // It may be told at once, or when the other half has come.
        say_set(what, sets[i], half == (i < 2) ? timeout : 0);
    }
}

// The subject ends first or last.
static void subject(int first) {
    int fd = connected_by(AF_INET);
    for (int i = 0; i < KINDS; i++) sets[i] = set_of(fd, kinds[i]);
    warm_up(fd);
    look("nothing yet", -1, 0);
    if (first) OK(shutdown(fd, SHUT_WR));
    look("nothing from there", -1, 0);
    meet();
    settle_end(fd);
    look(first ? "both have ended" : "the peer has ended", 1, WAIT_MS);
    if (!first) OK(shutdown(fd, SHUT_WR));
    for (int i = 2; i < KINDS && !first; i++) say_set("now both have", sets[i], WAIT_MS);
    for (int i = 0; i < KINDS; i++) say_set("once", sets[i], NOT_FOR_MS);
    for (int i = 0; i < KINDS; i++) {
        OK(control(sets[i], EPOLL_CTL_MOD, fd, kinds[i]));
        say_set("asked again", sets[i], WAIT_MS);
        say_set("and once", sets[i], 0);
        OK(close(sets[i]));
    }
    OK(close(fd));
}

static void partner(void) {
    int fd = connected_by(AF_INET);
    warm_up(fd);
    meet();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
    OK(close(fd));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int first = 0; first < 2; first++) {
        if (is_subject) subject(first);
        else partner();
    }
    return 0;
}
