// CTL_MOD for room, while another thread waits for input and the peer's own bytes go over TCP: it is told when the peer has read.
#include "waiting.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    send_text(fd, "pace");
    hear(fd, 5);
    pthread_t thread = waiting_on(set, "asked for room meanwhile");
    static char chunk[65536];
    long sent = 0;
    ssize_t n;
    while ((n = send(fd, chunk, sizeof chunk, MSG_DONTWAIT)) > 0) sent += n;
    if (errno != EAGAIN) die(__LINE__, "send");
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT));
    tell_number(sent);
    finish(thread);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(int fd) {
    hear(fd, 4);
    // From here on TCP carries what is sent.
    OK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){500000000}, sizeof(unsigned)));
    send_text(fd, "paced");
    static char chunk[65536];
    for (long left = await_number(); left > 0;) {
        ssize_t n = OK(recv(fd, chunk, sizeof chunk, 0));
        if (n == 0) die(__LINE__, "an end");
        left -= n;
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
