// accept: ended by a signal, or restarted; also when the handler closes nothing but looks at the time.
#include "alarms.h"

static void server(void) {
    int listener = listening(AF_INET);
    alarms_begin(0);
    TRY(accept(listener, NULL, NULL));
    TRY(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    alarms_begin(SA_RESTART);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    alarms_end();
    say_alarms("restarted");
    warm_up(fd);
    hear(fd, 4);
}

static void client(void) {
    in_port_t port = await_number();
    // Until the server has been disturbed while it waits; its signals come every 10 ms.
    poll(NULL, 0, 60);
    int fd = connect_port(AF_INET, port);
    warm_up(fd);
    send_text(fd, "data");
}

SERVER_AND_CLIENT(server, client)
