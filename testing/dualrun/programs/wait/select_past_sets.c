// select of more descriptors than the sets have bits for, as of `getdtablesize()`: the kernel looks, and clears, as far as the process's table reaches.
#include "dual.h"
#include <sys/mman.h>
#include <sys/select.h>

enum { HIGH = 1500, BITS = 8 * sizeof(long), WORDS = 65536 / BITS };

static fd_set *at_end_of_page(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(mprotect(pages + 4096, 4096, PROT_NONE));
    return (fd_set *)(pages + 4096 - sizeof(fd_set));
}

static void put(void *set, int fd) { ((unsigned long *)set)[fd / BITS] |= 1ul << fd % BITS; }

static int has(const void *set, int fd) { return ((const unsigned long *)set)[fd / BITS] >> fd % BITS & 1; }

static int choose(int by_pselect, int count, void *in, void *out) {
    struct timeval zero = {0, 0};
    struct timespec none = {0, 0};
    return by_pselect ? pselect(count, in, out, NULL, &none, NULL) : select(count, in, out, NULL, &zero);
}

static void look(const char *what, int fd) {
    fd_set *edge = at_end_of_page();
    unsigned long *behind = malloc(WORDS * sizeof *behind);
    for (int by_pselect = 0; by_pselect < 2; by_pselect++) {
        FD_ZERO(edge);
        FD_SET(fd, edge);
        say("%s", what);
        TRY(choose(by_pselect, 1048576, NULL, edge));
        say("in the set: %d", FD_ISSET(fd, edge) != 0);
        FD_SET(fd, edge);
        TRY(choose(by_pselect, 1025, NULL, edge));
        memset(behind, 0xff, WORDS * sizeof *behind);
        memset(behind, 0, sizeof(fd_set));
        put(behind, fd);
        TRY(choose(by_pselect, 65536, NULL, behind));
        say("in the set: %d, behind it: %lx", has(behind, fd), behind[sizeof(fd_set) / sizeof *behind]);
        memset(behind, 0, sizeof(fd_set));
        put(behind, fd);
        TRY(choose(by_pselect, 65536, behind, behind));
    }
    free(behind);
}

static void high(const char *what, int fd, int closed) {
    unsigned long *set = calloc(WORDS, sizeof *set);
    for (int by_pselect = 0; by_pselect < 2; by_pselect++) {
        say("%s", what);
        put(set, fd);
        TRY(choose(by_pselect, 65536, NULL, set));
        say("in the set: %d", has(set, fd));
        put(set, 40000);
        TRY(choose(by_pselect, 65536, NULL, set));
        say("in the set: %d, beyond the table: %d", has(set, fd), has(set, 40000));
        put(set, closed);
        TRY(choose(by_pselect, 65536, NULL, set));
        memset(set, 0, WORDS * sizeof *set);
    }
    free(set);
}

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    look("a pipe", ends[1]);
    look("the connection", fd);
    OK(dup2(ends[1], HIGH));
    high("a pipe at a high number", HIGH, HIGH + 50);
    OK(dup2(fd, HIGH));
    high("the connection at a high number", HIGH, HIGH + 50);
    OK(close(HIGH));
    high("the connection", fd, HIGH);
    int higher = OK(fcntl(fd, F_DUPFD, 3000));
    high("the connection higher still", higher, HIGH);
    OK(close(higher));
    send_text(fd, "end");
}

static void partner(int fd) { hear(fd, 3); }

SUBJECT_AND_PARTNER(subject, partner)
