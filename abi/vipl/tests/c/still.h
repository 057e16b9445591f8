/*
 * still.h - a peer that stands still: a process whose VI is connected to one of ours, and which is stopped each time before it takes
 * a message.  So a send to it waits for its acknowledgement, at reliable reception, until the process is told to go on.
 */
#ifndef SOVIA_VIPL_STILL_H
#define SOVIA_VIPL_STILL_H

#include "test.h"

static inline VIP_VI_HANDLE still_vi(struct nic *nic)
{
    VIP_VI_HANDLE     vi = vi_create(nic, NULL, NULL, VIP_FALSE);
    VIP_VI_STATE      state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN       send_empty, recv_empty;

    MUST(VipQueryVi(vi, &state, &attributes, &send_empty, &recv_empty));
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
    MUST(VipSetViAttributes(vi, &attributes));
    return vi;
}

static inline int still_run(const char *device, pid_t owner, int messages)
{
    struct nic      nic;
    struct memory   memory;
    union address   here, there;
    VIP_VI_HANDLE   vi;
    VIP_DESCRIPTOR *done;
    char            name[16];
    int             i;

    limit_time();
    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    vi = still_vi(&nic);
    /* One more, which ends with the connection. */
    for (i = 0; i <= messages; i++) {
        descriptor_fill(descriptor_at(&memory, (size_t)i), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
        MUST(VipPostRecv(vi, descriptor_at(&memory, (size_t)i), memory.handle));
    }
    address_of(&nic, &here, NULL, "still");
    address_of(&nic, &there, NULL, test_name(name, sizeof name, owner, 'z'));
    MUST(vi_request(vi, &here, &there, SOON_MS));
    for (i = 0; i < messages; i++) {
        NEED(raise(SIGSTOP) == 0);
        completed(VipRecvWait(vi, SOON_MS, &done), &done);
    }
    vi_await_end(vi, SOON_MS);
    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    return 0;
}

/* Starts the process; call it before any VIPL call.  Returns 0 where no NIC reaches another process. */
static inline pid_t still_start(const char *device, int messages)
{
    pid_t owner = getpid(), still;

    if (strcmp(device, "sim") == 0)
        return 0;
    fflush(NULL);
    still = fork();
    NEED(still >= 0);
    if (still == 0) {
        /* A stopped process does not die of SIGTERM. */
        NEED(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        exit(still_run(device, owner, messages));
    }
    return still;
}

/* Returns a VI that is connected to the process. */
static inline VIP_VI_HANDLE still_connect(struct nic *nic)
{
    VIP_VI_HANDLE vi = still_vi(nic);
    union address here;
    char          name[16];

    address_of(nic, &here, NULL, test_name(name, sizeof name, getpid(), 'z'));
    vi_serve(nic, vi, &here);
    return vi;
}

/* Returns when the process stands still. */
static inline void still_await(pid_t still)
{
    pid_t waited;
    int   status;

    while ((waited = waitpid(still, &status, WUNTRACED)) < 0 && errno == EINTR)
        continue;
    NEED(waited == still && WIFSTOPPED(status));
}

static inline void still_end(pid_t still, VIP_VI_HANDLE vi)
{
    pid_t waited;
    int   status;

    vi_close(vi);
    while ((waited = waitpid(still, &status, 0)) < 0 && errno == EINTR)
        continue;
    NEED(waited == still && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
