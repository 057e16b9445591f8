// server PORT: the procedures of trip.x on 127.0.0.1, without rpcbind.
#include "trip.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

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

int main(int count, char **arguments) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(count > 1 ? atoi(arguments[1]) : 0),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, length) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&at, &length)) {
        perror("server");
        return 1;
    }
    SVCXPRT *transport = svctcp_create(listener, 0, 0);
    // Protocol 0: rpcbind is not told.
    if (!transport || !svc_register(transport, TRIP, TRIP_FIRST, trip_1, 0)) {
        fprintf(stderr, "server: no service\n");
        return 1;
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    svc_run();
    return 1;
}
