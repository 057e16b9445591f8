// A thread sends more than fits while another closes the descriptor: all of it arrives, and then the end.
#include "closes.h"

static void subject(int fd) {
    close_beside_sender(fd);
}

static void partner(int fd) {
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
