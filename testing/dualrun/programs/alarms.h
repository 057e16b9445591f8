// Signals that come again and again, so that one of them meets the call, however late it begins to wait.
#ifndef DUAL_ALARMS_H
#define DUAL_ALARMS_H

#include "dual.h"
#include <sys/time.h>

static volatile sig_atomic_t alarms;

SHARED void count_alarm(int signal) {
    (void)signal;
    alarms++;
}

SHARED void alarms_every_ms(int ms) {
    struct itimerval often = {{0, ms * 1000}, {0, ms * 1000}};
    OK(setitimer(ITIMER_REAL, &often, NULL));
}

// Without SA_RESTART unless `flags` has it.
SHARED void alarms_begin(int flags) {
    alarms = 0;
    handle(SIGALRM, count_alarm, flags);
    alarms_every_ms(10);
}

SHARED void alarms_end(void) { alarms_every_ms(0); }

// Some signals met the call, which went on.
SHARED void say_alarms(const char *what) { say("%s: signals came: %d", what, alarms > 0); }

#endif
