// An echo over TCP, two dozen connections at once, a thread each at both ends: `echo server PORT` and `echo client PORT`.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// More at once than can all be there from first to last: connections come to lie where others have been.
enum { CONNECTIONS = 24, ROUNDS = 40, LENGTH = 2000 };

#define OK(call) ((call) < 0 ? (perror(#call), exit(1), 0) : 0)

static struct sockaddr_in address = {.sin_family = AF_INET};

static void exact(int fd, char *bytes) {
    for (ssize_t at = 0, got; at < LENGTH; at += got)
        if ((got = recv(fd, bytes + at, LENGTH - at, 0)) <= 0) {
            perror("recv");
            exit(1);
        }
}

static void *answer(void *with) {
    int fd = (int)(intptr_t)with;
    char *bytes = malloc(LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        exact(fd, bytes);
        OK(send(fd, bytes, LENGTH, 0));
    }
    free(bytes);
    close(fd);
    return NULL;
}

static void *ask(void *with) {
    int number = (int)(intptr_t)with, fd = socket(AF_INET, SOCK_STREAM, 0);
    OK(fd);
    OK(connect(fd, (struct sockaddr *)&address, sizeof address));
    char *asked = malloc(LENGTH), *heard = malloc(LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        memset(asked, number * ROUNDS + round, LENGTH);
        OK(send(fd, asked, LENGTH, 0));
        exact(fd, heard);
        if (memcmp(asked, heard, LENGTH) != 0) {
            fprintf(stderr, "other bytes than were sent\n");
            exit(1);
        }
    }
    free(asked);
    free(heard);
    close(fd);
    return NULL;
}

// What a pipe orders is no race, also where the library stands before `read` and `write`.
static int said, pipes[2];

static void *hear(void *with) {
    char byte;
    if (read(pipes[0], &byte, 1) != 1 || said != 1) {
        fprintf(stderr, "nothing was said\n");
        exit(1);
    }
    return with;
}

static void say(void) {
    pthread_t thread;
    OK(pipe(pipes));
    pthread_create(&thread, NULL, hear, NULL);
    said = 1;
    OK(write(pipes[1], "", 1));
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    if (argc < 3) return 64;
    say();
    int is_server = strcmp(argv[1], "server") == 0, on = 1, listener = -1;
    address.sin_port = htons(atoi(argv[2]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (is_server) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        OK(listener);
        OK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
        OK(bind(listener, (struct sockaddr *)&address, sizeof address));
        OK(listen(listener, CONNECTIONS));
    }
    pthread_t threads[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        intptr_t with = is_server ? accept(listener, NULL, NULL) : i;
        OK(with);
        pthread_create(&threads[i], NULL, is_server ? answer : ask, (void *)with);
    }
    for (int i = 0; i < CONNECTIONS; i++) pthread_join(threads[i], NULL);
    if (is_server) close(listener);
    return 0;
}
