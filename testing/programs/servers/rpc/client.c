// client PORT check              calls each procedure of trip.x and looks at every byte that comes back
// client PORT time BYTES COUNT   nanoseconds for a call without a body, with a text of so many bytes: of 9 rows of COUNT calls, the median and
//                                the least; 0 is the procedure without argument
// PORT is of 127.0.0.1, or the path of a Unix socket.
#include "trip.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

static CLIENT *client;

static void die(const char *what) {
    clnt_perror(client, (char *)what);
    exit(1);
}

static void call_null(void) {
    if (!trip_null_1(client)) die("null");
}

static void call_text(char *text) {
    int *zero = trip_text_1(text, client);
    if (!zero || *zero != 0) die("text");
}

static void check(void) {
    for (int i = 0; i < 1000; i++) {
        call_null();
        int *sum = trip_add_1((trip_pair){i, 1000000 - 3 * i}, client);
        if (!sum || *sum != 1000000 - 2 * i) die("add");
    }
    static char block[TRIP_MAX];
    for (u_int length = 0; length <= TRIP_MAX; length += length < 64 ? 1 : 4093) {
        // The last is the largest that there may be.
        if (TRIP_MAX - length < 4093) length = TRIP_MAX;
        for (u_int i = 0; i < length; i++) block[i] = (char)(i * 7 + length);
        trip_block *same = trip_echo_1((trip_block){length, block}, client);
        if (!same || same->trip_block_len != length) die("echo: length");
        if (length && memcmp(same->trip_block_val, block, length)) die("echo: bytes");
        clnt_freeres(client, (xdrproc_t)xdr_trip_block, (char *)same);
    }
    static int row[16384];
    for (u_int length = 0; length <= 16384; length += 1024) {
        for (u_int i = 0; i < length; i++) row[i] = (int)(i * 2654435761u + length);
        trip_row *next = trip_row_1((trip_row){length, row}, client);
        if (!next || next->trip_row_len != length) die("row: length");
        for (u_int i = 0; i < length; i++)
            if (next->trip_row_val[i] != row[i] + 1) die("row: numbers");
        clnt_freeres(client, (xdrproc_t)xdr_trip_row, (char *)next);
    }
    printf("ok\n");
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static int in_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(size_t bytes, int count) {
    enum { ROWS = 9 };
    static char text[TRIP_MAX + 1];
    double ns[ROWS];
    memset(text, 'x', bytes);
    // The first row warms up.
    for (int row = -1; row < ROWS; row++) {
        long long start = now_ns();
        for (int i = 0; i < count; i++) {
            if (bytes == 0)
                call_null();
            else
                call_text(text);
        }
        if (row >= 0) ns[row] = (double)(now_ns() - start) / count;
    }
    qsort(ns, ROWS, sizeof *ns, in_order);
    printf("%.0f %.0f\n", ns[ROWS / 2], ns[0]);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(atoi(arguments[1])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    strncpy(path.sun_path, arguments[1], sizeof path.sun_path - 1);
    int any = RPC_ANYSOCK;
    client = strchr(arguments[1], '/') ? clntunix_create(&path, TRIP, TRIP_FIRST, &any, 0, 0)
                                       : clnttcp_create(&at, TRIP, TRIP_FIRST, &any, 0, 0);
    if (!client) {
        clnt_pcreateerror("client");
        return 1;
    }
    if (!strcmp(arguments[2], "check")) check();
    // Several sizes one after the other, over one connection.
    for (int i = 3; i + 1 < count; i += 2) {
        size_t bytes = strtoul(arguments[i], NULL, 10);
        if (bytes <= TRIP_MAX) measure(bytes, atoi(arguments[i + 1]));
    }
    clnt_destroy(client);
    return 0;
}
