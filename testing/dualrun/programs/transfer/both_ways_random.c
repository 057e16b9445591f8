// Much data in both directions at once, in pieces of random sizes at every place.
#include "dual.h"

enum { TOTAL = 12 << 20 };

static void *sends(void *with) {
    int fd = *(int *)with;
    unsigned seed = is_client ? 1 : 2;
    char *piece = malloc(200000);
    for (size_t at = 0; at < TOTAL;) {
        size_t most = rand_r(&seed) % 4 == 0 ? 200000 : 3000;
        size_t part = 1 + rand_r(&seed) % most;
        if (part > TOTAL - at) part = TOTAL - at;
        fill(piece, part, at);
        if (send_all(fd, piece, part) != (ssize_t)part) die(__LINE__, "send");
        at += part;
    }
    free(piece);
    OK(shutdown(fd, SHUT_WR));
    return NULL;
}

static void end(int fd) {
    pthread_t thread = start(sends, &fd);
    unsigned seed = is_client ? 3 : 4;
    size_t at = 0;
    for (;;) {
        size_t most = rand_r(&seed) % 4 == 0 ? 200000 : 3000;
        ssize_t got = recv(fd, buf, 1 + rand_r(&seed) % most, 0);
        if (got <= 0) break;
        if (!as_filled(buf, got, at)) die(__LINE__, "not as sent");
        at += got;
    }
    say("%zu bytes", at);
    finish(thread);
}

SUBJECT_AND_PARTNER(end, end)
