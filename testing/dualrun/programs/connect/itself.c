// A process that is connected with itself, through a listener and by simultaneous open of one socket.
#include "dual.h"

static void end(void) {
    int listener = listening(AF_INET);
    int one = connect_port(AF_INET, port_of(listener));
    int other = OK(accept(listener, NULL, NULL));
    for (int i = 0; i < 300; i++) {
        char text[64];
        if (send_all(one, "from one to the other", 21) != 21 || recv_all(other, text, 21) != 21) die(__LINE__, "turn");
        if (send_all(other, "and back again", 14) != 14 || recv_all(one, text, 14) != 14) die(__LINE__, "turn");
    }
    for (int i = 0; i < 64; i++) {
        fill(buf, 10000, 0);
        send_all(one, buf, 10000);
        recv_filled(other, 10000);
    }
    OK(close(one));
    recv_to_end(other);
    int self = bound(AF_INET);
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, port_of(self), &address);
    TRY(connect(self, (struct sockaddr *)&address, length));
    // Or each turn would wait for an acknowledgement.
    OK(setsockopt(self, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    for (int i = 0; i < 300; i++) {
        char text[64];
        if (send_all(self, "to myself", 9) != 9 || recv_all(self, text, 9) != 9) die(__LINE__, "turn");
    }
    send_text(self, "last");
    OK(shutdown(self, SHUT_WR));
    hear(self, 4);
    TRY(recv(self, buf, 1, 0));
}

SERVER_AND_CLIENT(end, end)
