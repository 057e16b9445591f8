// As system_in_handler, while another process has the connection all the time.
#include "from_handlers.h"

static void subject(int fd) {
    send_beside_a_keeper(fd, by_system);
}

SUBJECT_AND_PARTNER(subject, partner)
