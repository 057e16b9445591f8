// An echo over TCP, whose server has a ring of io_uring: `uring server PORT` and `uring client PORT`.
// Half of what comes goes through a file by way of the ring, as in a database; the rest is read and written by the ring itself.
#include <arpa/inet.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 2000, LENGTH = 100 };

#define OK(call) ((call) < 0 ? (perror(#call), exit(1), 0) : 0)

static void done(struct io_uring *ring, int expected) {
    struct io_uring_cqe *cqe;
    OK(io_uring_submit(ring));
    OK(io_uring_wait_cqe(ring, &cqe));
    if (cqe->res != expected) {
        fprintf(stderr, "%d instead of %d\n", cqe->res, expected);
        exit(1);
    }
    io_uring_cqe_seen(ring, cqe);
}

static void exact(int fd, char *bytes) {
    for (ssize_t at = 0, got; at < LENGTH; at += got)
        if ((got = recv(fd, bytes + at, LENGTH - at, 0)) <= 0) {
            perror("recv");
            exit(1);
        }
}

static void serve(int fd) {
    struct io_uring ring;
    char bytes[LENGTH];
    FILE *file = tmpfile();
    OK(io_uring_queue_init(8, &ring, 0));
    for (int round = 0; round < ROUNDS; round++) {
        exact(fd, bytes);
        io_uring_prep_write(io_uring_get_sqe(&ring), fileno(file), bytes, LENGTH, round * LENGTH);
        done(&ring, LENGTH);
        memset(bytes, 0, LENGTH);
        io_uring_prep_read(io_uring_get_sqe(&ring), fileno(file), bytes, LENGTH, round * LENGTH);
        done(&ring, LENGTH);
        OK(send(fd, bytes, LENGTH, 0));
    }
    for (int round = 0; round < ROUNDS; round++) {
        io_uring_prep_recv(io_uring_get_sqe(&ring), fd, bytes, LENGTH, MSG_WAITALL);
        done(&ring, LENGTH);
        io_uring_prep_send(io_uring_get_sqe(&ring), fd, bytes, LENGTH, 0);
        done(&ring, LENGTH);
    }
}

static void ask(int fd) {
    char sent[LENGTH], got[LENGTH];
    for (int round = 0; round < 2 * ROUNDS; round++) {
        memset(sent, round % 251, LENGTH);
        OK(send(fd, sent, LENGTH, 0));
        exact(fd, got);
        if (memcmp(sent, got, LENGTH) != 0) {
            fprintf(stderr, "round %d differs\n", round);
            exit(1);
        }
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(atoi(argv[argc - 1]))};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (argv[1][0] == 's') {
        OK(bind(fd, (struct sockaddr *)&address, sizeof address));
        OK(listen(fd, 1));
        OK(fd = accept(fd, 0, 0));
    } else {
        OK(connect(fd, (struct sockaddr *)&address, sizeof address));
    }
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    (argv[1][0] == 's' ? serve : ask)(fd);
}
