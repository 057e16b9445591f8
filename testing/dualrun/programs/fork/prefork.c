// A prefork server: workers that were forked before accept from one listener.
#include "dual.h"

enum { WORKERS = 3, CONNECTIONS = 12 };

static void server(void) {
    int listener = listening(AF_INET), results[2];
    OK(pipe(results));
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = OK(fork());
        if (workers[i] != 0) continue;
        for (;;) {
            int fd = OK(accept(listener, NULL, NULL));
            ssize_t got;
            int stop = 0;
            if (recv(fd, buf, 1, MSG_PEEK) == 1 && buf[0] != 'q') warm_up(fd);
            while ((got = recv(fd, buf, sizeof buf, 0)) > 0) {
                stop = buf[0] == 'q';
                send_all(fd, buf, got);
            }
            OK(close(fd));
            if (stop) _exit(0);
        }
    }
    tell_number(port_of(listener));
    OK(close(listener));
    for (int i = 0; i < WORKERS; i++) say_child("worker", workers[i]);
}

static void client(void) {
    in_port_t port = await_number();
    int fds[CONNECTIONS], right = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = connect_port(AF_INET, port);
        warm_up(fds[i]);
        char out[500], in[500];
        for (int turn = 0; turn < 200; turn++) {
            fill(out, 500, turn);
            out[0] = 'a';
            send_all(fds[i], out, 500);
            right += recv_all(fds[i], in, 500) == 500 && memcmp(in, out, 500) == 0;
        }
        OK(close(fds[i]));
    }
    say("%d right", right);
    for (int i = 0; i < WORKERS; i++) fds[i] = connect_port(AF_INET, port);
    for (int i = 0; i < WORKERS; i++) {
        send_text(fds[i], "quit");
        OK(shutdown(fds[i], SHUT_WR));
        recv_to_end(fds[i]);
    }
}

SERVER_AND_CLIENT(server, client)
