/*
 * abi_notify - statements 180, 182, 184, 186, 188 to 191: what handlers are given, and that they may call back.
 */
#include "test.h"

enum { ROUNDS = 100 };

/* What one call of a handler was given. */
struct given {
    VIP_PVOID            context;
    VIP_NIC_HANDLE       nic;
    VIP_VI_HANDLE        vi;
    VIP_DESCRIPTOR      *descriptor;
    VIP_BOOLEAN          recv_queue;
    VIP_ERROR_DESCRIPTOR error;
    VIP_VI_STATE         state; /* of the VI that an error names, inside the handler */
};

/* The calls so far; handlers of one NIC handle run one at a time, those of two may not. */
static struct given    calls[16];
static int             count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;

static void note(const struct given *given)
{
    pthread_mutex_lock(&lock);
    NEED(count < (int)(sizeof calls / sizeof calls[0]));
    calls[count++] = *given;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* Waits until there have been as many calls as wanted; returns how many there have been SOON_MS later at the latest. */
static int await_calls(int wanted)
{
    struct timespec until;
    int             seen;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SOON_MS / 1000;
    pthread_mutex_lock(&lock);
    while (count < wanted && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    seen = count;
    pthread_mutex_unlock(&lock);
    return seen;
}

static void begin(void)
{
    pthread_mutex_lock(&lock);
    memset(calls, 0, sizeof calls);
    count = 0;
    pthread_mutex_unlock(&lock);
}

static void on_done(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    struct given given;

    memset(&given, 0, sizeof given);
    given.context = context;
    given.nic = nic;
    given.vi = vi;
    given.descriptor = descriptor;
    note(&given);
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue)
{
    struct given given;

    memset(&given, 0, sizeof given);
    given.context = context;
    given.nic = nic;
    given.vi = vi;
    given.recv_queue = recv_queue;
    note(&given);
}

static void on_async_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    struct given      given;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN       send_empty, recv_empty;

    memset(&given, 0, sizeof given);
    given.context = context;
    given.error = *error;
    if (error->ViHandle)
        MUST(VipQueryVi(error->ViHandle, &given.state, &attributes, &send_empty, &recv_empty));
    note(&given);
}

static void post_recv(VIP_VI_HANDLE vi, const struct memory *memory, size_t index)
{
    VIP_DESCRIPTOR *descriptor = descriptor_at(memory, index);

    descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(vi, descriptor, memory->handle));
}

static void post_send(VIP_VI_HANDLE vi, const struct memory *memory, size_t index)
{
    VIP_DESCRIPTOR *descriptor = descriptor_at(memory, index);

    descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostSend(vi, descriptor, memory->handle));
}

static void work_queues(struct nic *nic, struct memory *memory, VIP_VI_HANDLE server, VIP_VI_HANDLE client)
{
    struct verdict  recv = {180, 0, 0, "a completed receive goes to its handler"};
    struct verdict  once = {182, 0, 0, "one registration, one call"};
    VIP_DESCRIPTOR *done;

    begin();
    post_recv(server, memory, 0);
    post_recv(server, memory, 1);
    MUST(VipRecvNotify(server, memory, on_done));
    post_send(client, memory, 8);
    check(&recv, await_calls(1) == 1, "%d calls", count);
    check(&recv, calls[0].context == memory && calls[0].nic == nic->handle && calls[0].vi == server, "the receive's arguments");
    check(&recv, calls[0].descriptor == descriptor_at(memory, 0), "the receive's descriptor");
    check(&recv, descriptor_at(memory, 0)->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE), "the receive's status");

    /* The send completed; registering afterwards is as good. */
    MUST(VipSendNotify(client, nic, on_done));
    check(&recv, await_calls(2) == 2, "%d calls", count);
    check(&recv, calls[1].context == nic && calls[1].vi == client && calls[1].descriptor == descriptor_at(memory, 8), "the send's");
    RETURNS(&recv, VIP_DESCRIPTOR_ERROR, VipSendDone(client, &done));
    check(&recv, done == NULL, "the handler's descriptor is still there");
    conclude(&recv);

    post_send(client, memory, 8);
    RETURNS(&once, VIP_SUCCESS, VipRecvWait(server, SOON_MS, &done));
    check(&once, done == descriptor_at(memory, 1), "another descriptor");
    RETURNS(&once, VIP_SUCCESS, VipSendWait(client, SOON_MS, &done));
    check(&once, count == 2, "%d calls", count);
    conclude(&once);
}

static void completion_queue(struct nic *nic, struct memory *memory, VIP_CQ_HANDLE cq, VIP_VI_HANDLE server, VIP_VI_HANDLE client)
{
    struct verdict  verdict = {184, 0, 0, "an entry goes to its handler, with VI and queue"};
    VIP_VI_HANDLE   vi;
    VIP_BOOLEAN     recv_queue;
    VIP_DESCRIPTOR *done;

    begin();
    MUST(VipCQNotify(cq, &verdict, on_entry));
    post_recv(server, memory, 0);
    post_send(client, memory, 8);
    check(&verdict, await_calls(1) == 1, "%d calls", count);
    check(&verdict, calls[0].context == &verdict && calls[0].nic == nic->handle && calls[0].vi == server, "the arguments");
    check(&verdict, calls[0].recv_queue == VIP_TRUE, "the wrong queue");
    RETURNS(&verdict, VIP_NOT_DONE, VipCQDone(cq, &vi, &recv_queue));
    RETURNS(&verdict, VIP_SUCCESS, VipRecvDone(server, &done));
    RETURNS(&verdict, VIP_SUCCESS, VipSendWait(client, SOON_MS, &done));

    post_recv(client, memory, 9);
    post_send(server, memory, 1);
    MUST(VipCQNotify(cq, NULL, on_entry));
    check(&verdict, await_calls(2) == 2, "%d calls", count);
    check(&verdict, calls[1].context == NULL && calls[1].vi == server && calls[1].recv_queue == VIP_FALSE, "the send's arguments");
    RETURNS(&verdict, VIP_SUCCESS, VipSendDone(server, &done));
    RETURNS(&verdict, VIP_SUCCESS, VipRecvWait(client, SOON_MS, &done));
    conclude(&verdict);
}

/* Statement 186: the server answers from its handler, and asks to be called again. */
struct answering {
    struct memory *memory;
    int            answered;
};

static void answer(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    struct answering *answering = context;
    VIP_DESCRIPTOR   *done;

    (void)nic;
    NEED(descriptor->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
    if (answering->answered < ROUNDS - 1) {
        MUST(VipPostRecv(vi, descriptor, answering->memory->handle));
        MUST(VipRecvNotify(vi, answering, answer));
    }
    answering->answered++;
    post_send(vi, answering->memory, 1);
    while (VipSendDone(vi, &done) == VIP_NOT_DONE)
        continue;
}

static void from_inside(struct memory *memory, VIP_VI_HANDLE server, VIP_VI_HANDLE client)
{
    struct verdict   verdict = {186, 0, 0, "a handler posts, sends and registers again"};
    struct answering answering = {memory, 0};
    VIP_DESCRIPTOR  *done;
    int              round;

    post_recv(server, memory, 0);
    MUST(VipRecvNotify(server, &answering, answer));
    for (round = 0; round < ROUNDS; round++) {
        post_recv(client, memory, 9);
        post_send(client, memory, 8);
        RETURNS(&verdict, VIP_SUCCESS, VipSendWait(client, SOON_MS, &done));
        RETURNS(&verdict, VIP_SUCCESS, VipRecvWait(client, SOON_MS, &done));
    }
    check(&verdict, answering.answered == ROUNDS, "%d answers", answering.answered);
    conclude(&verdict);
}

/* Posts a descriptor that is misaligned, for which there is no handler, and waits for the line on stderr that tells of it. */
static void logged(struct verdict *verdict, VIP_VI_HANDLE idle, VIP_DESCRIPTOR *misaligned, VIP_MEM_HANDLE handle)
{
    static const char wanted[] = "asynchronous error";
    char              text[4096] = "";
    FILE             *log = tmpfile();
    int               before = dup(STDERR_FILENO);
    double            end = now_us() + SOON_MS * 1e3;

    NEED(log && before >= 0 && dup2(fileno(log), STDERR_FILENO) == STDERR_FILENO);
    RETURNS(verdict, VIP_SUCCESS, VipPostRecv(idle, misaligned, handle));
    while (!strstr(text, wanted) && now_us() < end) {
        ssize_t length = pread(fileno(log), text, sizeof text - 1, 0);

        NEED(length >= 0);
        text[length] = '\0';
        pause_ms(1);
    }
    NEED(dup2(before, STDERR_FILENO) == STDERR_FILENO && close(before) == 0 && fclose(log) == 0);
    check(verdict, strstr(text, wanted) && strstr(text, "PostDesc"), "no line that tells of it: %s", text);
}

/* Statement 188: a NIC handle that never had a handler. */
static void without_handler(struct nic *nic, const char *device)
{
    struct verdict verdict = {188, 0, 0, "without a handler an error is logged and the program goes on"};
    struct nic     fresh = *nic;
    struct memory  memory;
    VIP_VI_HANDLE  idle;

    MUST(VipOpenNic(device, &fresh.handle));
    MUST(VipCreatePtag(fresh.handle, &fresh.ptag));
    memory_get(&fresh, &memory, 4096, VIP_FALSE);
    idle = vi_create(&fresh, NULL, NULL, VIP_FALSE);
    logged(&verdict, idle, (VIP_DESCRIPTOR *)(void *)(memory.at + 8), memory.handle);
    post_recv(idle, &memory, 0);
    vi_close(idle);
    memory_put(&fresh, &memory);
    nic_close(&fresh);
    conclude(&verdict);
}

static void errors(struct nic *nic, struct memory *memory, VIP_VI_HANDLE server, VIP_VI_HANDLE client)
{
    struct verdict        filled = {189, 0, 0, "a handler of errors gets its context and a filled descriptor"};
    struct verdict        restored = {190, 0, 0, "without a handler an error is a line on stderr"};
    struct verdict        lost = {191, 0, 0, "a lost connection names the VI, which is in the error state"};
    VIP_VI_HANDLE         idle = vi_create(nic, NULL, NULL, VIP_FALSE);
    VIP_DESCRIPTOR       *misaligned = (VIP_DESCRIPTOR *)(void *)(memory->at + 8);
    VIP_ERROR_DESCRIPTOR *error = &calls[0].error;

    begin();
    MUST(VipErrorCallback(nic->handle, memory, on_async_error));
    MUST(VipPostRecv(idle, misaligned, memory->handle));
    check(&filled, await_calls(1) == 1, "%d calls", count);
    check(&filled, calls[0].context == memory && error->NicHandle == nic->handle && error->ViHandle == idle, "the arguments");
    check(&filled, error->CQHandle == NULL && error->DescriptorPtr == misaligned && error->OpCode == 0, "the descriptor");
    check(&filled, error->ErrorCode == VIP_ERROR_POST_DESC && error->ResourceCode == VIP_RESOURCE_DESCRIPTOR, "the codes");
    conclude(&filled);

    begin();
    MUST(VipDisconnect(client));
    check(&lost, await_calls(1) == 1, "%d calls", count);
    check(&lost, error->NicHandle == nic->handle && error->ViHandle == server && calls[0].state == VIP_STATE_ERROR, "the VI");
    check(&lost, error->ErrorCode == VIP_ERROR_CONN_LOST && error->ResourceCode == VIP_RESOURCE_VI, "the codes");
    check(&lost, error->CQHandle == NULL && error->DescriptorPtr == NULL, "fields that do not apply");
    conclude(&lost);

    begin();
    MUST(VipErrorCallback(nic->handle, NULL, NULL));
    logged(&restored, idle, misaligned, memory->handle);
    check(&restored, count == 0, "the handler that was removed has been called");
    MUST(VipErrorCallback(nic->handle, NULL, on_async_error));
    MUST(VipPostRecv(idle, misaligned, memory->handle));
    check(&restored, await_calls(1) == 1, "the handler is not back");
    conclude(&restored);
    MUST(VipErrorCallback(nic->handle, NULL, on_error));
    vi_close(idle);
}

int main(void)
{
    const char   *device = test_start();
    struct nic    nic;
    struct memory memory;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE server, client, bound, other;

    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    MUST(VipCreateCQ(nic.handle, 16, &cq));
    server = vi_create(&nic, NULL, NULL, VIP_FALSE);
    client = vi_create(&nic, NULL, NULL, VIP_FALSE);
    bound = vi_create(&nic, cq, cq, VIP_FALSE);
    other = vi_create(&nic, NULL, NULL, VIP_FALSE);
    connect_pair(&nic, server, client, 'n');
    connect_pair(&nic, bound, other, 'm');

    work_queues(&nic, &memory, server, client);
    completion_queue(&nic, &memory, cq, bound, other);
    from_inside(&memory, server, client);
    errors(&nic, &memory, server, client);
    without_handler(&nic, device);

    vi_close(server);
    vi_close(client);
    vi_close(bound);
    vi_close(other);
    MUST(VipDestroyCQ(cq));
    memory_put(&nic, &memory);
    nic_close(&nic);
    return test_failed;
}
