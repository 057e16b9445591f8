// Shutting a listener wakes the accept that waits on it.
#include "dual.h"

static int listener;
static volatile int acceptor;

static void *accepts(void *with) {
    acceptor = gettid();
    TRY(accept(listener, NULL, NULL));
    return with;
}

static void end(void) {
    listener = listening(AF_INET);
    pthread_t thread = start(accepts, NULL);
    while (acceptor == 0) sched_yield();
    wait_asleep(acceptor);
    OK(shutdown(listener, SHUT_RDWR));
    finish(thread);
    TRY(accept(listener, NULL, NULL));
    TRY(listen(listener, 1));
}

SERVER_AND_CLIENT(end, end)
