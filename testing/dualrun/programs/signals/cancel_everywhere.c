// A thread can be cancelled in each call that waits, and the connection goes on; in recvmmsg on other sockets, too.
#include "dual.h"
#include <sys/epoll.h>
#include <sys/select.h>

static int connection, datagrams, local[2], empty[2], filled[2];
static volatile int tid;

static struct iovec whole = {buf, sizeof buf};
static struct mmsghdr message = {.msg_hdr = {.msg_iov = &whole, .msg_iovlen = 1}};

static void cleanup(void *with) { say("cleanup of %s", (char *)with); }

static int set_of_one(void) {
    int set = OK(epoll_create1(0));
    struct epoll_event wanted = {.events = EPOLLIN};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, connection, &wanted));
    return set;
}

static fd_set *bits_of_one(fd_set *bits) {
    FD_ZERO(bits);
    FD_SET(connection, bits);
    return bits;
}

static ssize_t splices(size_t length) {
    OK(write(filled[1], buf, length));
    return splice(filled[0], NULL, connection, NULL, length, 0);
}

#define CALL(name, call)                                                                                               \
    static void *name(void *with) {                                                                                    \
        fd_set bits __attribute__((unused));                                                                           \
        struct pollfd one __attribute__((unused)) = {.fd = connection, .events = POLLIN};                              \
        struct epoll_event event __attribute__((unused));                                                              \
        pthread_cleanup_push(cleanup, with);                                                                           \
        tid = gettid();                                                                                                \
        TRY(call);                                                                                                     \
        pthread_cleanup_pop(0);                                                                                        \
        return with;                                                                                                   \
    }

CALL(recvs_all, recv(connection, buf, 9, MSG_WAITALL))
CALL(reads, read(connection, buf, 9))
CALL(readvs, readv(connection, &whole, 1))
CALL(preadvs, preadv2(connection, &whole, 1, -1, 0))
CALL(recvmsgs, recvmsg(connection, &message.msg_hdr, 0))
CALL(recvmmsgs, recvmmsg(connection, &message, 1, 0, NULL))
CALL(recvmmsgs_datagrams, recvmmsg(datagrams, &message, 1, 0, NULL))
CALL(recvmmsgs_local, recvmmsg(local[0], &message, 1, 0, NULL))
CALL(splices_from, splice(connection, NULL, empty[1], NULL, 9, 0))
CALL(splices_nothing, splice(empty[0], NULL, connection, NULL, 9, 0))
CALL(ppolls, ppoll(&one, 1, NULL, NULL))
CALL(selects, select(connection + 1, bits_of_one(&bits), NULL, NULL, NULL))
CALL(pselects, pselect(connection + 1, bits_of_one(&bits), NULL, NULL, NULL, NULL))
CALL(epolls, epoll_wait(set_of_one(), &event, 1, -1))
CALL(epoll_pwaits, epoll_pwait2(set_of_one(), &event, 1, NULL, NULL))

CALL(sends, ({ for (;;) OK(send(connection, buf, sizeof buf, 0)); 0; }))
CALL(writevs, ({ for (;;) OK(writev(connection, &whole, 1)); 0; }))
CALL(pwritevs, ({ for (;;) OK(pwritev2(connection, &whole, 1, -1, 0)); 0; }))
CALL(sendmsgs, ({ for (;;) OK(sendmsg(connection, &message.msg_hdr, 0)); 0; }))
CALL(sendmmsgs, ({ for (;;) OK(sendmmsg(connection, &message, 1, 0)); 0; }))
CALL(splices_to, ({ for (;;) OK(splices(4096)); 0; }))

static void cancel(void *(*run)(void *), char *name) {
    tid = 0;
    pthread_t thread = start(run, name);
    while (tid == 0) sched_yield();
    wait_asleep(tid);
    ZERO(pthread_cancel(thread));
    say("cancelled: %d", finish(thread) == PTHREAD_CANCELED);
}

#define CANCEL(run) cancel(run, #run)

static void subject(int fd) {
    connection = fd;
    datagrams = OK(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in any = {.sin_family = AF_INET};
    OK(bind(datagrams, (struct sockaddr *)&any, sizeof any));
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, local));
    OK(pipe(empty));
    OK(pipe(filled));
    memset(buf, 'x', sizeof buf);

    CANCEL(recvs_all);
    CANCEL(reads);
    CANCEL(readvs);
    CANCEL(preadvs);
    CANCEL(recvmsgs);
    CANCEL(recvmmsgs);
    CANCEL(recvmmsgs_datagrams);
    CANCEL(recvmmsgs_local);
    CANCEL(splices_from);
    CANCEL(splices_nothing);
    CANCEL(ppolls);
    CANCEL(selects);
    CANCEL(pselects);
    CANCEL(epolls);
    CANCEL(epoll_pwaits);
    tell();
    hear(fd, 4);
    memset(buf, 'x', sizeof buf);
    CANCEL(sends);
    CANCEL(writevs);
    CANCEL(pwritevs);
    CANCEL(sendmsgs);
    CANCEL(sendmmsgs);
    CANCEL(splices_to);
    tell();
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 4);
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    await();
    size_t total = 0, wrong = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0)
        for (ssize_t i = 0; i < got; i++, total++) wrong += buf[i] != 'x';
    say("some: %d, wrong: %zu, then %zd", total > 0, wrong, got);
    send_text(fd, "done");
}

SUBJECT_AND_PARTNER(subject, partner)
