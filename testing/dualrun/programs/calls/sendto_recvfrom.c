// sendto and recvfrom on a connected stream: the address is ignored, and the name comes back empty.
#include "dual.h"

static void subject(int fd) {
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, htons(9), &address);
    TRY(sendto(fd, "one", 3, 0, (struct sockaddr *)&address, length));
    TRY(sendto(fd, "two", 3, 0, NULL, 0));
    struct sockaddr_storage name;
    socklen_t name_length = sizeof name;
    TRY(recvfrom(fd, buf, 5, 0, (struct sockaddr *)&name, &name_length));
    say("name of %u bytes", (unsigned)name_length);
    TRY(recvfrom(fd, buf, 5, MSG_DONTWAIT, NULL, NULL));
    meet();
}

static void partner(int fd) {
    hear(fd, 6);
    send_text(fd, "three");
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
