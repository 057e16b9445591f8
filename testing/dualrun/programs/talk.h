// What most programs about fork and exec let the other program do: read, write, a good deal, to the end.
#ifndef DUAL_TALK_H
#define DUAL_TALK_H

#include "again.h"

SHARED void talk(const char *who, int in, int out) {
    for (int i = 0; i < 20; i++) {
        char text[16];
        if (write(out, "turn turn", 9) != 9) die(__LINE__, who);
        for (ssize_t got, have = 0; have < 9; have += got) {
            got = read(in, text + have, 9 - have);
            if (got <= 0) die(__LINE__, who);
        }
        if (memcmp(text, "nrut nrut", 9) != 0) die(__LINE__, who);
    }
    for (int at = 0; at < 100000; at += 1000) {
        char part[1000];
        fill(part, 1000, at);
        if (write(out, part, 1000) != 1000) die(__LINE__, who);
    }
    say("%s has talked", who);
}

SHARED void listen_to_talk(int fd) {
    char text[16];
    for (int i = 0; i < 20; i++) {
        if (recv_all(fd, text, 9) != 9 || memcmp(text, "turn turn", 9) != 0) die(__LINE__, "talk");
        send_text(fd, "nrut nrut");
    }
    recv_filled(fd, 100000);
    say("heard it");
}

#endif
