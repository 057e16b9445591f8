// Sending from memory that cannot be written, and into memory at the edge of a mapping.
#include "dual.h"
#include <sys/mman.h>

static void subject(int fd) {
    char *pages = mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(pages, 65536, 0);
    OK(mprotect(pages, 65536, PROT_READ));
    OK(mprotect(pages + 2 * 65536, 65536, PROT_NONE));
    TRY(send(fd, pages, 65536, 0));
    settle(fd, 10);
    TRY(recv(fd, pages, 10, 0)); // cannot be written
    TRY(recv(fd, pages + 2 * 65536 - 10, 10, 0));
    say("%.10s", pages + 2 * 65536 - 10);
    meet();
}

static void partner(int fd) {
    recv_filled(fd, 65536);
    send_text(fd, "0123456789");
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
