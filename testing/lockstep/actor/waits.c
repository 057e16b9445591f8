// What waits for events: poll, select and epoll.
#include "actor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

// poll|ppoll TIMEOUT SLOT:EVENTS ...
static void poll_slots(char **words, int count) {
    struct pollfd entries[WORDS];
    nfds_t many = 0;
    for (int i = 2; i < count; i++) {
        char *events = strchr(words[i], ':');
        if (!events) continue;
        entries[many++] = (struct pollfd){slot_of(words[i]), (short)strtol(events + 1, NULL, 16), 0};
    }
    int timeout = atoi(words[1]), result;
    if (!strcmp(words[0], "poll")) result = poll(entries, many, timeout);
    else {
        struct timespec limit = {timeout / 1000, timeout % 1000 * 1000000L};
        result = ppoll(entries, many, timeout < 0 ? NULL : &limit, NULL);
    }
    if (result < 0) {
        answer_result(result);
        return;
    }
    char text[1024];
    int length = snprintf(text, sizeof text, "%d", result);
    for (nfds_t i = 0; i < many; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %hx", (unsigned short)entries[i].revents);
    answer("%s", text);
}

// select TIMEOUT SLOT ...: each for all three
static void select_slots(char **words, int count) {
    fd_set sets[3];
    int highest = -1;
    for (int s = 0; s < 3; s++) FD_ZERO(&sets[s]);
    for (int i = 2; i < count; i++) {
        int fd = slot_of(words[i]);
        if (fd < 0 || fd >= FD_SETSIZE) continue;
        FD_SET(fd, &sets[0]);
        // Nearly always there is room: who waits for that waits for nothing.
        if (atoi(words[1]) == 0) FD_SET(fd, &sets[1]);
        FD_SET(fd, &sets[2]);
        highest = fd > highest ? fd : highest;
    }
    int timeout = atoi(words[1]);
    struct timeval limit = {timeout / 1000, timeout % 1000 * 1000L};
    int result = select(highest + 1, &sets[0], &sets[1], &sets[2], timeout < 0 ? NULL : &limit);
    if (result < 0) {
        answer_result(result);
        return;
    }
    char text[1024];
    int length = snprintf(text, sizeof text, "%d", result);
    for (int i = 2; i < count; i++) {
        int fd = slot_of(words[i]), is = 0;
        for (int s = 0; s < 3 && fd >= 0 && fd < FD_SETSIZE; s++) is |= FD_ISSET(fd, &sets[s]) ? 1 << s : 0;
        length += snprintf(text + length, sizeof text - (size_t)length, " %x", is);
    }
    answer("%s", text);
}

static int by_data(const void *a, const void *b) {
    const struct epoll_event *left = a, *right = b;
    return (left->data.u64 > right->data.u64) - (left->data.u64 < right->data.u64);
}

// epwait SET TIMEOUT
static void wait_for_set(char **words) {
    struct epoll_event events[SLOTS];
    int result = epoll_wait(slot_of(words[1]), events, SLOTS, atoi(words[2]));
    if (result < 0) {
        answer_result(result);
        return;
    }
    qsort(events, (size_t)result, sizeof *events, by_data);
    char text[1024];
    int length = snprintf(text, sizeof text, "%d", result);
    for (int i = 0; i < result; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %d:%x", (int)events[i].data.u64, events[i].events);
    answer("%s", text);
}

// epctl SET add|mod|del SLOT EVENTS
static void change_set(char **words) {
    int how = !strcmp(words[2], "add") ? EPOLL_CTL_ADD : !strcmp(words[2], "mod") ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    struct epoll_event event = {.events = (uint32_t)strtoul(words[4], NULL, 16), .data.u64 = (uint64_t)atoi(words[3])};
    answer_result(epoll_ctl(slot_of(words[1]), how, slot_of(words[3]), &event));
}

// nudge BUT: a call that takes nothing on each connection, but on that of one slot
static void nudge(char **words) {
    char byte;
    int but = atoi(words[1]);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i] >= 0 && i != but) recv(slots[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    answer_result(0);
}

int waits_command(char **words, int count) {
    if ((!strcmp(words[0], "poll") || !strcmp(words[0], "ppoll")) && count >= 3) poll_slots(words, count);
    else if (!strcmp(words[0], "select") && count >= 3) select_slots(words, count);
    else if (!strcmp(words[0], "epcreate") && count == 2) fill_slot(words[1], epoll_create1(0));
    else if (!strcmp(words[0], "epctl") && count == 5) change_set(words);
    else if (!strcmp(words[0], "epwait") && count == 3) wait_for_set(words);
    else if (!strcmp(words[0], "nudge") && count == 2) nudge(words);
    else return 0;
    return 1;
}
