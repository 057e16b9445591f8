// Handlers that all calls install and tell of, before there is a connection and while there is one; each runs once for a signal.
#include "alarms.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

sighandler_t bsd_signal(int, sighandler_t);
sighandler_t __sysv_signal(int, sighandler_t);

static volatile sig_atomic_t first_ran, second_ran, told;

static void first(int signal) { first_ran += signal == SIGUSR1; }

static void second(int signal) { second_ran += signal == SIGUSR1; }

static void tells(int signal, siginfo_t *info, void *context) {
    told += signal == SIGUSR2 && info->si_pid == getpid() && context != NULL;
}

static const char *name(sighandler_t handler) {
    return handler == first    ? "first"
           : handler == second ? "second"
           : handler == SIG_DFL ? "default"
           : handler == SIG_IGN ? "ignored"
                                : "another";
}

static void say_installed(const char *when) {
    struct sigaction was;
    OK(sigaction(SIGUSR1, NULL, &was));
    int restarts = was.sa_flags & SA_RESTART, once = was.sa_flags & SA_RESETHAND;
    say("%s: %s%s%s, SIGUSR2 blocked: %d", when, name(was.sa_handler), restarts ? ", restarts" : "", once ? ", once" : "",
        sigismember(&was.sa_mask, SIGUSR2));
}

static void run(const char *how, sighandler_t before) {
    say("%s: before it %s", how, name(before));
    say_installed(how);
    OK(raise(SIGUSR1));
    say("%s: first %d, second %d", how, first_ran, second_ran);
}

static void subject(void) {
    struct sigaction action = {.sa_handler = first, .sa_flags = SA_RESTART}, was;
    sigaddset(&action.sa_mask, SIGUSR2);
    OK(sigaction(SIGUSR1, &action, NULL));
    struct sigaction with_info = {.sa_sigaction = tells, .sa_flags = SA_SIGINFO};
    OK(sigaction(SIGUSR2, &with_info, NULL));
    int fd = connected();
    say_installed("before the connection");
    OK(raise(SIGUSR1));
    OK(raise(SIGUSR2));
    OK(sigaction(SIGUSR2, NULL, &was));
    say("with information: %d, its own: %d", told, was.sa_sigaction == tells);
    run("signal", signal(SIGUSR1, second));
    run("bsd_signal", bsd_signal(SIGUSR1, first));
    run("ssignal", ssignal(SIGUSR1, second));
    run("sysv_signal", sysv_signal(SIGUSR1, first));
    run("__sysv_signal", __sysv_signal(SIGUSR1, second));
    run("sigset", sigset(SIGUSR1, first));
    run("sigset again", sigset(SIGUSR1, second));
    OK(siginterrupt(SIGUSR1, 0));
    say_installed("siginterrupt");
    say("ignored: before it %s", name(signal(SIGUSR1, SIG_IGN)));
    OK(raise(SIGUSR1));
    say("default: before it %s", name(signal(SIGUSR1, SIG_DFL)));
    say_installed("default");
    send_text(fd, "done");
}

static void partner(void) { hear(connected(), 4); }

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
