// Two processes and one connection, driven at random: parts sent and received by every kind of call, pauses, the way back to TCP, handing over,
// shutdown, close, and kill -9 of either. What arrives must be the beginning of what was sent; all of it, if nobody was killed.
//
//   ends SEED SECONDS PATIENCE       seeds from SEED on, for so long; 0 seconds is one. Stops at the first that fails
//   ends kills SEED COUNT PATIENCE   until so many ends were killed; without the way back, which may take seconds, and shorter
#define _GNU_SOURCE
#include "ends.h"
#include "loopback.h"
#include "rights.h"

// ---- what an end does now and then: others get the connection, or another number of it

static int is_mapped(void) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) return 0;
    while (!found && fgets(line, sizeof line, maps) != NULL) found = strstr(line, "sovia-stream") != NULL;
    fclose(maps);
    return found;
}

static void become_again(int fd, int over, int with_us) {
    char numbers[3][16];
    snprintf(numbers[0], 16, "%d", which);
    snprintf(numbers[1], 16, "%d", fd);
    snprintf(numbers[2], 16, "%d", over);
    if (!with_us) OK(unsetenv("LD_PRELOAD"));
    char *words[] = {"ends", "again", numbers[0], numbers[1], numbers[2], NULL};
    OK(execv("/proc/self/exe", words));
}

// This process has given the connection away, and ends as who has it ends.
static void end_as(pid_t heir) {
    int how;
    while (waitpid(heir, &how, 0) < 0)
        if (errno != EINTR) die("waitpid");
    _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 9);
}

static pid_t fork_heir(void) {
    pid_t heir = OK(fork());
    if (heir == 0) OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
    return heir;
}

static int taken(int over) {
    int fd = take(over);
    if (fd < 0) die("nothing passed");
    return fd;
}

static int move(int fd, enum move what) {
    me->mapped |= is_mapped();
    me->moves++;
    me->doing = what;
    if (what == EXEC_STRANGER || what == PASS_STRANGER || what == PASS_ITSELF) me->went_back = me->mapped;
    switch (what) {
    case EXEC_FOLLOWED: become_again(fd, -1, 1); break;
    case EXEC_STRANGER: become_again(fd, -1, 0); break;
    case FORK: {
        pid_t heir = fork_heir();
        if (heir == 0) return fd;
        close(fd);
        end_as(heir);
        break;
    }
    case PASS_STRANGER: {
        int over[2];
        OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
        pid_t heir = fork_heir();
        if (heir == 0) {
            close(fd);
            close(over[0]);
            become_again(-1, over[1], 0);
        }
        close(over[1]);
        OK(pass(over[0], fd));
        close(fd);
        end_as(heir);
        break;
    }
    case PASS_ITSELF: {
        int over[2];
        OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
        OK(pass(over[0], fd));
        close(fd);
        fd = taken(over[1]);
        close(over[0]);
        return fd;
    }
    case DUP: {
        int other = OK(fcntl(fd, F_DUPFD, 3 + pick(40)));
        close(fd);
        return other;
    }
    case MOVES: break;
    }
    return fd;
}

// ---- bytes

// An error that a death explains, or the way back, which cannot always put what was unread on TCP (docs/limitations.md). A reset is told once; what
// is told after it differs.
static void excuse(const char *call) {
    int saved = errno, is_reset = saved == ECONNRESET || saved == EPIPE;
    int went_back = me->went_back || peer->went_back;
    int is_second = me->failed && saved == ENOTCONN;
    if (!(run->killed && (is_reset || is_second)) && !(went_back && (is_reset || saved == ENOTCONN))) die(call);
    if (!run->killed) run->lost = 1;
    me->failed = saved;
}

// At most `most`, in some way; false once nothing more is taken.
static int put(int fd, size_t most, int may_block) {
    size_t n = size_of(most);
    size_t third = n / 3;
    fill(buffer, n, me->sent, which);
    struct iovec parts[3] = {{buffer, third}, {buffer + third, third}, {buffer + 2 * third, n - 2 * third}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    int flags = MSG_NOSIGNAL | (may_block ? 0 : MSG_DONTWAIT);
    me->promised = me->sent + n;
    me->doing = SENDING;
    ssize_t done;
    switch (pick(4)) {
    case 0: done = may_block ? write(fd, buffer, n) : send(fd, buffer, n, flags); break;
    case 1: done = may_block ? writev(fd, parts, 3) : sendmsg(fd, &message, flags); break;
    case 2: done = sendmsg(fd, &message, flags); break;
    default: done = send(fd, buffer, n, flags | (pick(16) ? 0 : MSG_MORE)); break;
    }
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (done < 0) return excuse("send"), 0;
    me->sent += done;
    return 1;
}

// At most `most`, in some way; false once nothing more comes.
static int get(int fd, size_t most, int may_block) {
    size_t n = size_of(most);
    size_t third = n / 3;
    struct iovec parts[3] = {{buffer, third}, {buffer + third, third}, {buffer + 2 * third, n - 2 * third}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    int flags = may_block ? 0 : MSG_DONTWAIT;
    me->doing = RECEIVING;
    ssize_t done;
    switch (pick(6)) {
    case 0: done = may_block ? read(fd, buffer, n) : recv(fd, buffer, n, flags); break;
    case 1: done = may_block ? readv(fd, parts, 3) : recvmsg(fd, &message, flags); break;
    case 2: done = recvmsg(fd, &message, flags); break;
    case 3:
        done = recv(fd, buffer, n, flags | MSG_PEEK);
        if (done > 0) {
            check(buffer, done, me->received);
            done = recv(fd, buffer, pick(2) ? (size_t)done : size_of(done), flags);
        }
        break;
    case 4: done = recv(fd, buffer, n, flags | MSG_WAITALL); break;
    default: done = recv(fd, buffer, n, flags); break;
    }
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (done < 0) return excuse("recv"), 0;
    check(buffer, done, me->received);
    me->received += done;
    if (done > 0) return 1;
    me->ended = 1;
    // The end is told only after all that was sent, but for a reset that a send was told already.
    if (!me->failed && me->received < peer->sent) {
        if (!run->killed) wrong("the end came too early");
        run->cut = 1;
    }
    if (!run->killed && !run->lost && me->received != peer->total) wrong("the end came before all was sent");
    return 0;
}

// Both directions at once: whatever can be done.
static void turn_free(int fd) {
    int sends = me->sent < me->total && !me->failed, waits = pick(4);
    struct pollfd one = {fd, (me->ended ? 0 : POLLIN) | (sends ? POLLOUT : 0), 0};
    me->doing = WAITING;
    if (waits == 0) OK(poll(&one, 1, -1));
    else if (waits == 1) {
        int set = OK(epoll_create1(EPOLL_CLOEXEC));
        struct epoll_event event = {.events = one.events};
        OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        OK(epoll_wait(set, &event, 1, -1));
        close(set);
    } else if (!sends) {
        get(fd, MOST, 1);
        return;
    }
    if (pick(2) && sends) put(fd, me->total - me->sent, 0);
    if (!me->ended) get(fd, MOST, 0);
    if (sends && !me->failed && me->sent < me->total) put(fd, me->total - me->sent, 0);
}

// One direction at a time, as both know: blocking calls.
static int turn_strict(int fd) {
    uint64_t until[2] = {0, 0};
    for (int part = 0; part < run->parts; part++) {
        until[part % 2] += run->lengths[part];
        if (part % 2 == which && me->sent < until[which]) return put(fd, until[which] - me->sent, 1);
        if (part % 2 != which && me->received < until[!which]) return get(fd, until[!which] - me->received, 1);
    }
    return get(fd, 1, 1);
}

// Whoever has closed the connection, or has been told of its end, has nothing of it any more: no descriptor, no memory.
static void keep_nothing(void) {
    char path[64], name[256];
    for (int fd = 0; fd < 4096; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, name, sizeof name - 1);
        if (n < 0) continue;
        name[n] = 0;
        if (strncmp(name, "socket:", 7) == 0 || strstr(name, "sovia-stream") != NULL) {
            fprintf(stderr, "ends: %d is %s\n", fd, name);
            wrong("a descriptor is left");
        }
    }
    if (is_mapped()) wrong("the connection's memory is left");
}

static void live(int fd) {
    while (!(me->ended && (me->is_shut || me->failed)) && !(me->failed && me->failed_receiving)) {
        while (me->next < MOVES_MOST && me->sent + me->received >= me->at[me->next]) {
            enum move what = me->what[me->next++];
            fd = move(fd, what);
        }
        if (pick(24) == 0) usleep(pick(1500));
        if (me->sent == me->total && !me->is_shut && !me->failed) {
            me->is_shut = 1;
            me->doing = SHUTTING;
            me->mapped |= is_mapped();
            // The other end may know that all has come, and close instead.
            if (me->received == peer->total && pick(2)) break;
            if (shutdown(fd, SHUT_WR) < 0 && errno != ENOTCONN) die("shutdown");
            continue;
        }
        // Whoever died owes the rest.
        if (me->ended && run->killed && run->is_strict) break;
        if (me->failed) {
            // A reset: what came before it may still be read.
            me->failed_receiving = !get(fd, MOST, 1);
        } else if (run->is_strict) {
            turn_strict(fd);
        } else {
            turn_free(fd);
        }
    }
    me->doing = CLOSING;
    close(fd);
    if (!run->killed && !me->failed && me->received != peer->total) wrong("not all was received");
    keep_nothing();
    me->is_done = 1;
    _exit(0);
}

static void be(int index, int listener, struct sockaddr_in *address) {
    which = index, me = &run->ends[index], peer = &run->ends[!index];
    int fd, one = 1;
    OK(setpgid(0, 0));
    OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
    signal(SIGPIPE, SIG_IGN);
    if (index) {
        fd = connect_to(address);
        close(listener);
    } else {
        // The other may be killed before it connects.
        struct pollfd come = {listener, POLLIN, 0};
        while (OK(poll(&come, 1, 20)) == 0)
            if (run->killed) _exit(0);
        fd = OK(accept(listener, NULL, NULL));
        close(listener);
    }
    if (pick(2)) OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    live(fd);
}

// ---- one seed

static void plan(uint64_t seed, int only_kills) {
    memset(run, 0, sizeof *run);
    run->seed = seed;
    uint64_t random = mix(seed);
    run->is_strict = draw(&random) % 2;
    run->parts = 2 + draw(&random) % 10;
    uint64_t scale = draw(&random) % 4 == 0 ? 2000 : draw(&random) % 3 == 0 ? 2000000 : 300000;
    for (int part = 0; part < run->parts; part++) {
        run->lengths[part] = 1 + draw(&random) % scale;
        run->ends[part % 2].total += run->lengths[part];
    }
    uint64_t all = run->ends[0].total + run->ends[1].total;
    int moves = draw(&random) % 3 != 0;
    for (int index = 0; index < 2; index++) {
        struct end *end = &run->ends[index];
        end->random = draw(&random);
        uint64_t place = 0;
        for (int n = 0; n < MOVES_MOST; n++) {
            place += draw(&random) % all;
            end->at[n] = moves ? place : UINT64_MAX;
            end->what[n] = draw(&random) % MOVES;
            if (only_kills && (end->what[n] == EXEC_STRANGER || end->what[n] == PASS_STRANGER || end->what[n] == PASS_ITSELF))
                end->what[n] = DUP;
        }
    }
    run->victim = only_kills || draw(&random) % 2 ? (int)(draw(&random) % 2) : -1;
    run->kill_at = draw(&random) % (2 * all);
    run->kill_late = draw(&random) % 200000;
}

static int progress_of(uint64_t *sum) {
    *sum = 0;
    for (int index = 0; index < 2; index++) *sum += run->ends[index].sent + run->ends[index].received;
    return run->ends[0].is_done && run->ends[1].is_done;
}

static int try_seed(uint64_t seed, int patience, int only_kills) {
    plan(seed, only_kills);
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, 1);
    pid_t pids[2];
    for (int index = 0; index < 2; index++) {
        pids[index] = OK(fork());
        if (pids[index] == 0) be(index, listener, &address);
        setpgid(pids[index], pids[index]);
    }
    close(listener);
    uint64_t last = 0, since = now_ns(), sum;
    int left = 2, status = 0, victim = run->victim;
    while (left > 0 && status == 0) {
        int how;
        pid_t ended = waitpid(-1, &how, WNOHANG);
        if (ended > 0) {
            int index = pids[1] == ended;
            left--;
            int was_killed = run->killed && index == run->victim;
            if (!(WIFEXITED(how) && WEXITSTATUS(how) == 0) && !was_killed) {
                fprintf(stderr, "ends: end %d ended with %x\n", index, how);
                status = 5;
            }
            pids[index] = 0;
            continue;
        }
        progress_of(&sum);
        if (victim >= 0 && sum >= run->kill_at && pids[victim] > 0) {
            for (uint64_t begun = now_ns(); now_ns() - begun < run->kill_late;) {}
            run->killed = 1;
            kill(-pids[victim], SIGKILL);
            victim = -1;
        }
        if (sum != last) last = sum, since = now_ns();
        if (now_ns() - since > patience * 1000000000ull) {
            fprintf(stderr, "ends: nothing moves\n");
            status = 6;
        }
        usleep(victim >= 0 ? 30 : 300);
    }
    if (status) {
        report(pids);
        run->failed = 1;
        if (getenv("ENDS_KEEP")) pause();
        for (int index = 0; index < 2; index++)
            if (pids[index] > 0) kill(-pids[index], SIGKILL);
    }
    return status;
}

// This process's memory in kB, but for that of files.
static long resident(void) {
    char line[256];
    long kilobytes = 0, more;
    FILE *rollup = fopen("/proc/self/smaps_rollup", "re");
    if (rollup == NULL) die("smaps_rollup");
    while (fgets(line, sizeof line, rollup) != NULL) 
        if (sscanf(line, "Pss_Anon: %ld", &more) == 1 || sscanf(line, "Pss_Shmem: %ld", &more) == 1) kilobytes += more;
    fclose(rollup);
    return kilobytes;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "again") == 0) {
        run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, RUN_FD, 0);
        if (run == MAP_FAILED) die("mmap");
        which = atoi(argv[2]), me = &run->ends[which], peer = &run->ends[!which];
        int fd = atoi(argv[3]), over = atoi(argv[4]);
        signal(SIGPIPE, SIG_IGN);
        live(over < 0 ? fd : taken(over));
    }
    int only_kills = argc == 5 && strcmp(argv[1], "kills") == 0;
    argv += only_kills;
    if (argc - only_kills != 4) return 2;
    uint64_t seed = strtoull(argv[1], NULL, 0), begun = now_ns(), until = strtoull(argv[2], NULL, 0);
    int memory = OK(memfd_create("ends", 0));
    OK(ftruncate(memory, sizeof *run));
    OK(dup2(memory, RUN_FD));
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, RUN_FD, 0);
    if (run == MAP_FAILED) die("mmap");
    unsigned runs = 0, mapped = 0, moves = 0, kills = 0, resets = 0, lost = 0, cut = 0;
    long first = 0;
    do {
        int status = try_seed(seed, atoi(argv[3]), only_kills);
        if (status) return status;
        if (first == 0) first = resident();
        runs++, seed++;
        mapped += run->ends[0].mapped && run->ends[1].mapped;
        moves += run->ends[0].moves + run->ends[1].moves;
        kills += run->killed;
        lost += run->lost;
        cut += run->cut;
        resets += run->ends[0].failed || run->ends[1].failed;
    } while (only_kills ? kills < until : now_ns() - begun < until * 1000000000ull);
    keep_nothing();
    printf("runs %u mapped %u moves %u kills %u resets %u lost %u cut %u kB %ld then %ld\n", runs, mapped, moves, kills, resets, lost, cut, first,
           resident());
    return 0;
}
