// server PORT|PATH: the procedures of trip.x on 127.0.0.1, or at a Unix socket, without rpcbind.
#include "trip.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void trip_1(struct svc_req *request, SVCXPRT *transport);

void *trip_null_1_svc(struct svc_req *request) {
    (void)request;
    static char nothing;
    return &nothing;
}

int *trip_text_1_svc(trip_text text, struct svc_req *request) {
    (void)text, (void)request;
    static int zero;
    return &zero;
}

int *trip_add_1_svc(trip_pair pair, struct svc_req *request) {
    (void)request;
    static int sum;
    sum = pair.left + pair.right;
    return &sum;
}

trip_block *trip_echo_1_svc(trip_block block, struct svc_req *request) {
    (void)request;
    static trip_block same;
    same = block;
    return &same;
}

// Each number, plus one.
trip_row *trip_row_1_svc(trip_row row, struct svc_req *request) {
    (void)request;
    static trip_row next;
    for (u_int i = 0; i < row.trip_row_len; i++) row.trip_row_val[i]++;
    next = row;
    return &next;
}

// Listens at a port, and says which.
static SVCXPRT *serve_tcp(int port) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, length) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&at, &length)) {
        perror("server");
        return NULL;
    }
    printf("%d\n", ntohs(at.sin_port));
    return svctcp_create(listener, 0, 0);
}

static SVCXPRT *serve_unix(const char *path) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8)) {
        perror("server");
        return NULL;
    }
    return svc_vc_create(listener, 0, 0);
}

int main(int count, char **arguments) {
    const char *place = count > 1 ? arguments[1] : "0";
    SVCXPRT *transport = strchr(place, '/') ? serve_unix(place) : serve_tcp(atoi(place));
    // Protocol 0: rpcbind is not told.
    if (!transport || !svc_register(transport, TRIP, TRIP_FIRST, trip_1, 0)) {
        fprintf(stderr, "server: no service\n");
        return 1;
    }
    fflush(stdout);
    svc_run();
    return 1;
}
