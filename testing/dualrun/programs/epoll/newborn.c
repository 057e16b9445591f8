// Connections that a server with one thread accepts without waiting, and watches; after one request of each something else happens to it than another. What it says of
// the rest is to come by the set all the same, however the bytes go by then.
#include "epoll.h"
#include "instruction.h"
#include "passing.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { REQUESTS = 40, CROWD = 40 };
static const unsigned USUAL = EPOLLIN | EPOLLRDHUP | EPOLLET;

static int listener;

static int taken(void) {
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    OK(poll(&ready, 1, -1));
    return OK(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
}

// Answers so many requests of four bytes, each when the set has told of it.
static void answer(int fd, int set, int requests) {
    int heard = 0;
    while (heard < requests) {
        char word[8];
        ssize_t got = recv(fd, word, sizeof word, 0);
        if (got == 4) {
            heard++;
            send_text(fd, "pong");
        } else if (got >= 0 || errno != EAGAIN) {
            die(__LINE__, "a request");
        } else {
            struct epoll_event event;
            if (OK(epoll_wait(set, &event, 1, 5000)) == 0) die(__LINE__, "the set says nothing");
        }
    }
}

static void answer_to_end(int fd, int set, int requests) {
    answer(fd, set, requests);
    struct epoll_event event = {0};
    while (!(event.events & EPOLLRDHUP)) {
        if (OK(epoll_wait(set, &event, 1, 5000)) == 0) die(__LINE__, "the set says nothing of the end");
    }
    say("%s", events(event.events));
    recv_to_end(fd);
}

static void nothing(int *, int *) {}

static void is_duplicated(int *fd, int *) {
    int other = OK(dup(*fd));
    OK(close(*fd));
    *fd = other;
}

static void is_duplicated_over(int *fd, int *) {
    OK(dup2(*fd, 200));
    OK(close(200));
}

static void waits(int *fd, int *) {
    OK(fcntl(*fd, F_SETFL, 0));
    char word[4];
    say("%zd", recv_all(*fd, word, 4));
    send_text(*fd, "pong");
    OK(fcntl(*fd, F_SETFL, O_NONBLOCK));
}

static void has_options(int *fd, int *) {
    int on = 1, error = -1;
    socklen_t length = sizeof error;
    TRY(setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    TRY(getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d", error);
    length = sizeof on;
    TRY(getsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, &length));
    say("on %d", on != 0);
}

static void is_looked_at(int *fd, int *) {
    TRY(recv(*fd, buf, 4, MSG_PEEK));
    say_poll("poll", *fd, POLLIN | POLLOUT, 0);
}

static void is_watched_otherwise(int *fd, int *set) {
    TRY(control(*set, EPOLL_CTL_ADD, *fd, USUAL));
    TRY(control(*set, EPOLL_CTL_MOD, *fd, EPOLLIN | EPOLLRDHUP));
    say_set("level", *set, 0);
}

static void leaves_and_comes_back(int *fd, int *set) {
    TRY(control(*set, EPOLL_CTL_DEL, *fd, 0));
    TRY(control(*set, EPOLL_CTL_MOD, *fd, USUAL));
    TRY(control(*set, EPOLL_CTL_ADD, *fd, USUAL));
}

static void is_in_two(int *fd, int *set) {
    int other = set_of(*fd, USUAL);
    answer(*fd, other, 20);
    OK(close(*set));
    *set = other;
}

static void has_set_duplicated(int *, int *set) {
    int other = OK(dup(*set));
    OK(close(*set));
    *set = other;
}

static void has_set_closed(int *fd, int *set) {
    OK(close(*set));
    *set = set_of(*fd, USUAL);
}

static void has_set_passed(int *, int *set) {
    int pair[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pass(pair[0], *set);
    OK(close(take(pair[1])));
    OK(close(pair[0]));
    OK(close(pair[1]));
}

static void is_forked(int *fd, int *) {
    fflush(NULL);
    pid_t child = OK(fork());
    if (child == 0) {
        close(*fd);
        _exit(3);
    }
    say_child("child", child);
}

static void starts_program(int *, int *) {
    pid_t child = OK(vfork());
    if (child == 0) {
        execl("/bin/true", "true", NULL);
        _exit(9);
    }
    say_child("program", child);
}

static void *looks(void *fd) {
    say_poll("thread", *(int *)fd, POLLIN | POLLOUT, 0);
    return NULL;
}

static void is_looked_at_by_thread(int *fd, int *) { finish(start(looks, fd)); }

static void goes_by_messages(int *fd, int *set) {
    for (int i = 0; i < 3; i++) {
        struct epoll_event event;
        char word[4] = "";
        struct iovec room = {.iov_base = word, .iov_len = 4};
        struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1};
        while (recvmsg(*fd, &message, 0) != 4) OK(epoll_wait(*set, &event, 1, 5000));
        memcpy(word, "pong", 4);
        if (OK(sendmsg(*fd, &message, 0)) != 4) die(__LINE__, "sendmsg");
    }
}

static void is_still(int *, int *set) { say_set("meanwhile", *set, 250); }

static int signalled;

static void sends(int) { send_all(signalled, "more", 4); }

static void is_sent_to_by_handler(int *fd, int *) {
    signalled = *fd;
    handle(SIGUSR1, sends, 0);
    OK(raise(SIGUSR1));
}

static void is_closed_unseen(int *fd, int *set) {
    // The next has the same number.
    if (past(SYS_close, *fd, 0, 0) != 0) die(__LINE__, "close");
    *fd = taken();
    OK(control(*set, EPOLL_CTL_ADD, *fd, USUAL));
}

static void is_of_once(int *fd, int *set) {
    TRY(control(*set, EPOLL_CTL_MOD, *fd, EPOLLIN | EPOLLONESHOT));
    struct epoll_event event;
    OK(epoll_wait(*set, &event, 1, 5000));
    char word[4];
    say("%zd", recv_all(*fd, word, 4));
    send_text(*fd, "pong");
    TRY(control(*set, EPOLL_CTL_MOD, *fd, USUAL));
}

static void (*happens[])(int *fd, int *set) = {
    nothing, is_duplicated, is_duplicated_over, waits, has_options, is_looked_at, is_watched_otherwise,
    leaves_and_comes_back, is_in_two, has_set_duplicated, has_set_closed, has_set_passed, has_set_closed, is_forked,
    is_of_once, goes_by_messages, is_still, is_sent_to_by_handler, is_closed_unseen, nothing,
    // After each of these there are none that are new.
    is_looked_at_by_thread, starts_program,
};

enum { CASES = sizeof happens / sizeof *happens };

// How many requests a case answers by itself.
static int own(int which) {
    void (*happening)(int *, int *) = happens[which];
    if (happening == waits || happening == is_of_once) return 1;
    if (happening == goes_by_messages) return 3;
    return happening == is_in_two ? 20 : 0;
}

// The last two come in another order.
static void turn_about(void) {
    happens[CASES - 2] = starts_program;
    happens[CASES - 1] = is_looked_at_by_thread;
}

static void server(void) {
    if (is_warm) turn_about();
    listener = listening(AF_INET);
    tell_number(port_of(listener));
    // The first of all is as it always was.
    int first = OK(accept(listener, NULL, NULL)), set = new_set();
    warm_up(first);
    // Who polls the set hears of those that the kernel alone knows of, too.
    OK(control(set, EPOLL_CTL_ADD, first, EPOLLIN));
    int fd = taken();
    OK(control(set, EPOLL_CTL_ADD, fd, USUAL));
    tell();
    say_poll("the set", set, POLLIN, 5000);
    say_set("of it", set, 0);
    answer_to_end(fd, set, REQUESTS);
    OK(close(fd));
    OK(close(set));
    set = new_set();
    // More than it could answer before others come, and then one by one.
    int crowd[CROWD];
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = taken();
        OK(control(set, EPOLL_CTL_ADD, crowd[i], USUAL));
    }
    tell();
    for (int i = 0; i < CROWD; i++) {
        struct epoll_event event;
        if (OK(epoll_wait(set, &event, 1, 5000)) == 0) die(__LINE__, "the set says nothing");
        if (OK(recv(event.data.fd, buf, 4, 0)) != 4) die(__LINE__, "a request");
        send_text(event.data.fd, "pong");
        OK(close(event.data.fd));
    }
    for (int i = 0; i < CASES; i++) {
        say("case %d", i);
        int fd = taken();
        OK(control(set, EPOLL_CTL_ADD, fd, USUAL));
        answer(fd, set, 1);
        happens[i](&fd, &set);
        if (own(i) == 0) tell();
        answer_to_end(fd, set, REQUESTS - own(i));
        OK(close(fd));
    }
}

static void ask(int fd, int requests) {
    char word[4];
    for (int i = 0; i < requests; i++) {
        send_text(fd, "ping");
        if (recv_all(fd, word, 4) != 4 || memcmp(word, "pong", 4) != 0) die(__LINE__, "an answer");
    }
}

static void client(void) {
    if (is_warm) turn_about();
    in_port_t port = await_number();
    int first = connect_port(AF_INET, port);
    warm_up(first);
    int fd = connect_port(AF_INET, port);
    await();
    ask(fd, REQUESTS);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
    OK(close(fd));
    int crowd[CROWD];
    for (int i = 0; i < CROWD; i++) crowd[i] = connect_port(AF_INET, port);
    await();
    for (int i = 0; i < CROWD; i++) {
        ask(crowd[i], 1);
        recv_to_end(crowd[i]);
    }
    for (int i = 0; i < CASES; i++) {
        int fd = connect_port(AF_INET, port);
        ask(fd, 1);
        if (happens[i] == is_sent_to_by_handler) hear(fd, 4);
        if (happens[i] == is_closed_unseen) {
            recv_to_end(fd);
            OK(close(fd));
            fd = connect_port(AF_INET, port);
        }
        if (own(i) == 0) await();
        ask(fd, REQUESTS);
        OK(shutdown(fd, SHUT_WR));
        recv_to_end(fd);
        OK(close(fd));
    }
}

SERVER_AND_CLIENT(server, client)
