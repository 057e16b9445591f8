/*
 * legacy_prepost - statement 210, pre-post then retry (T4): receives posted before a request that fails stay posted.
 *
 * The client posts all its receives, then asks until it gets in: nobody waits, then it is rejected, then not answered in time,
 * then accepted.  The server sends at once; the messages land in the receives, in the order of posting.
 */
#include "test.h"

enum { DEPTH = 16, SIZE = 64, IMPATIENT_MS = 200 };

struct place {
    VIP_DESCRIPTOR descriptor[DEPTH];
    VIP_UINT8      bytes[DEPTH][SIZE];
};

static int server(const struct sides *sides)
{
    struct nic      nic;
    struct memory   memory;
    struct place   *place;
    union address   local;
    VIP_CONN_HANDLE connection;
    VIP_VI_HANDLE   vi;
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;
    char            name[16];
    int             i;

    nic_open(&nic, sides->device);
    memory_get(&nic, &memory, sizeof *place, VIP_FALSE);
    place = (struct place *)(void *)memory.at;
    vi = vi_create(&nic, NULL, NULL, VIP_FALSE);
    address_of(&nic, &local, NULL, test_name(name, sizeof name, sides->owner, 'p'));

    pause_ms(IMPATIENT_MS); /* so that the client meets VIP_NO_MATCH */
    MUST(VipConnectReject(await_request(&nic, &local, SOON_MS)));

    connection = await_request(&nic, &local, SOON_MS);
    pause_ms(3 * IMPATIENT_MS);
    result = VipConnectAccept(connection, vi);
    NEED(result == VIP_TIMEOUT || result == VIP_ERROR_RESOURCE);
    VipConnectReject(connection); /* programs do, whether it went with the failure or not */

    MUST(VipConnectAccept(await_request(&nic, &local, SOON_MS), vi));
    for (i = 0; i < DEPTH; i++) {
        memset(place->bytes[i], i + 1, SIZE);
        descriptor_fill(&place->descriptor[i], VIP_CONTROL_OP_SENDRECV, place->bytes[i], memory.handle, SIZE);
        MUST(VipPostSend(vi, &place->descriptor[i], memory.handle));
    }
    for (i = 0; i < DEPTH; i++)
        NEED(completed(VipSendWait(vi, VIP_INFINITE, &done), &done) == &place->descriptor[i]);

    /* The client says that it has everything by closing. */
    descriptor_fill(&place->descriptor[0], VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(vi, &place->descriptor[0], memory.handle));
    vi_await_end(vi, SOON_MS);
    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    return 0;
}

static void still_posted(VIP_VI_HANDLE vi)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_STATE      state;
    VIP_BOOLEAN       send_empty, recv_empty;
    VIP_DESCRIPTOR   *done;

    MUST(VipQueryVi(vi, &state, &attributes, &send_empty, &recv_empty));
    NEED(state == VIP_STATE_IDLE);
    NEED(!recv_empty);
    NEED(VipRecvDone(vi, &done) == VIP_NOT_DONE);
}

static int client(const struct sides *sides)
{
    struct nic        nic;
    struct memory     memory;
    struct place     *place;
    union address     local, remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_HANDLE     vi;
    VIP_DESCRIPTOR   *done;
    VIP_RETURN        result;
    char              name[16];
    int               i, unmatched = 0, rejected = 0, unanswered = 0;
    double            end = now_us() + SOON_MS * 1e3;

    nic_open(&nic, sides->device);
    memory_get(&nic, &memory, sizeof *place, VIP_FALSE);
    place = (struct place *)(void *)memory.at;
    vi = vi_create(&nic, NULL, NULL, VIP_FALSE);
    address_of(&nic, &local, NULL, "client");
    address_of(&nic, &remote, NULL, test_name(name, sizeof name, sides->owner, 'p'));
    for (i = 0; i < DEPTH; i++) {
        descriptor_fill(&place->descriptor[i], VIP_CONTROL_OP_SENDRECV, place->bytes[i], memory.handle, SIZE);
        MUST(VipPostRecv(vi, &place->descriptor[i], memory.handle));
    }

    while ((result = VipConnectRequest(vi, &local.net, &remote.net, rejected && !unanswered ? IMPATIENT_MS : SOON_MS,
                                       &attributes)) != VIP_SUCCESS) {
        unmatched += result == VIP_NO_MATCH;
        rejected += result == VIP_REJECT;
        unanswered += result == VIP_TIMEOUT;
        NEED(result == VIP_NO_MATCH || result == VIP_REJECT || result == VIP_TIMEOUT);
        NEED(now_us() < end);
        still_posted(vi);
        pause_ms(1);
    }
    NEED(unmatched > 0);
    NEED(rejected == 1);
    NEED(unanswered == 1);
    for (i = 0; i < DEPTH; i++) {
        NEED(completed(VipRecvWait(vi, SOON_MS, &done), &done) == &place->descriptor[i]);
        NEED(place->bytes[i][0] == i + 1 && place->bytes[i][SIZE - 1] == i + 1);
    }
    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    return 0;
}

int main(void)
{
    ok(run_pair(test_start(), server, client), 210, "pre-post, then retry after no match, reject and timeout");
    return test_failed;
}
