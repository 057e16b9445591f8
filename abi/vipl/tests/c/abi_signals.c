/*
 * abi_signals - statement 206: a handler of signals, installed without SA_RESTART, runs over and over in every wait and ends none.
 */
#include "still.h"

#include <sys/syscall.h>
#include <time.h>

#ifndef sigev_notify_thread_id /* glibc's before 2.39 */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { WAIT_MS = 100 };

static volatile sig_atomic_t caught;
static double                began;

static void on_signal(int number)
{
    (void)number;
    caught = caught + 1;
}

/* Signals this thread once a millisecond, until the timer is deleted: no other thread has to get a CPU for that. */
static timer_t pester(void)
{
    struct itimerspec each = {{0, 1000000}, {0, 1000000}};
    struct sigevent   event;
    timer_t           timer;

    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    NEED(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    NEED(timer_settime(timer, 0, &each, NULL) == 0);
    return timer;
}

static void begin_wait(void)
{
    caught = 0;
    began = now_us();
}

static void timed_out(struct verdict *verdict, VIP_RETURN result, const char *call)
{
    double ms = (now_us() - began) / 1e3;

    check(verdict, result == VIP_TIMEOUT, "%s: %s", call, result_name(result));
    check(verdict, ms >= WAIT_MS, "%s ended after %.0f ms", call, ms);
    check(verdict, caught > 0, "%s: no signal came", call);
}

#define TIMES_OUT(verdict, call) (begin_wait(), timed_out((verdict), (call), #call))

/* The other side of a request that is not answered. */
struct taker {
    struct nic     *nic;
    union address  *at;
    VIP_CONN_HANDLE connection;
};

static void *take(void *argument)
{
    struct taker *taker = argument;

    taker->connection = await_request(taker->nic, taker->at, SOON_MS);
    return NULL;
}

static void connecting(struct nic *nic, struct verdict *verdict)
{
    struct taker      taker = {nic, NULL, NULL};
    union address     here, there, nobody, remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    VIP_VI_HANDLE     vi = vi_create(nic, NULL, NULL, VIP_FALSE);
    pthread_t         thread;
    char              name[16];

    address_of(nic, &here, NULL, "client");
    address_of(nic, &there, NULL, test_name(name, sizeof name, getpid(), 's'));
    address_of(nic, &nobody, NULL, test_name(name, sizeof name, getpid(), 'x'));
    memset(&remote, 0, sizeof remote);
    TIMES_OUT(verdict, VipConnectWait(nic->handle, &there.net, WAIT_MS, &remote.net, &attributes, &connection));

    taker.at = &there;
    NEED(pthread_create(&thread, NULL, take, &taker) == 0);
    begin_wait();
    timed_out(verdict, vi_request(vi, &here, &there, WAIT_MS), "VipConnectRequest");
    NEED(pthread_join(thread, NULL) == 0);
    check(verdict, VipConnectReject(taker.connection) != VIP_INVALID_PARAMETER, "the request did not arrive");

    begin_wait();
    MUST(VipConnectPeerRequest(vi, &here.net, &nobody.net, WAIT_MS));
    timed_out(verdict, VipConnectPeerWait(vi, &attributes), "VipConnectPeerWait");
    vi_close(vi);
}

static void transferring(struct nic *nic, struct memory *memory, struct verdict *verdict)
{
    VIP_CQ_HANDLE   cq;
    VIP_VI_HANDLE   client = vi_create(nic, NULL, NULL, VIP_FALSE), server = vi_create(nic, NULL, NULL, VIP_FALSE), found;
    VIP_BOOLEAN     recv_queue;
    VIP_DESCRIPTOR *done;

    MUST(VipCreateCQ(nic->handle, 16, &cq));
    TIMES_OUT(verdict, VipCQWait(cq, WAIT_MS, &found, &recv_queue));
    MUST(VipDestroyCQ(cq));

    descriptor_fill(descriptor_at(memory, 0), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(server, descriptor_at(memory, 0), memory->handle));
    TIMES_OUT(verdict, VipRecvWait(server, WAIT_MS, &done));
    connect_pair(nic, server, client, 't');
    TIMES_OUT(verdict, VipRecvWait(server, WAIT_MS, &done));
    descriptor_fill(descriptor_at(memory, 1), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostSend(client, descriptor_at(memory, 1), memory->handle));
    RETURNS(verdict, VIP_SUCCESS, VipSendWait(client, SOON_MS, &done));
    RETURNS(verdict, VIP_SUCCESS, VipRecvWait(server, SOON_MS, &done));
    vi_close(client);
    vi_close(server);
}

/* The send stays incomplete: the process that would acknowledge it is stopped. */
static void sending(struct nic *nic, struct memory *memory, pid_t still, struct verdict *verdict)
{
    VIP_VI_HANDLE   vi = still_connect(nic);
    VIP_DESCRIPTOR *done;

    still_await(still);
    descriptor_fill(descriptor_at(memory, 0), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostSend(vi, descriptor_at(memory, 0), memory->handle));
    TIMES_OUT(verdict, VipSendWait(vi, WAIT_MS, &done));
    NEED(kill(still, SIGCONT) == 0);
    RETURNS(verdict, VIP_SUCCESS, VipSendWait(vi, SOON_MS, &done));
    still_end(still, vi);
}

int main(void)
{
    struct verdict   verdict = {206, 0, 0, "signals do not end a wait"};
    const char      *device = test_start();
    pid_t            still = still_start(device, 1);
    struct sigaction action;
    struct nic       nic;
    struct memory    memory;
    timer_t          pestering;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    NEED(sigaction(SIGUSR1, &action, NULL) == 0);
    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    pestering = pester();
    connecting(&nic, &verdict);
    transferring(&nic, &memory, &verdict);
    if (still)
        sending(&nic, &memory, still, &verdict);
    else
        puts("# 206: not VipSendWait: no process can stand still where the network is within one");
    NEED(timer_delete(pestering) == 0);
    memory_put(&nic, &memory);
    nic_close(&nic);
    conclude(&verdict);
    return test_failed;
}
