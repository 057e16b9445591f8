/*
 * legacy_credit - statement 210, credit flow control with zero-length immediate acknowledgements, as MP_Lite and Madeleine do.
 *
 * Half a window of messages is acknowledged by a message without segments whose immediate data is the number of receives posted
 * again.  Completed descriptors are posted again as they are, status and all; posted receives carry the immediate bit.
 */
#include "test.h"

enum { WINDOW = 16, MESSAGES = 2000, SIZE = 2048 };

struct place {
    VIP_DESCRIPTOR data[WINDOW], ack[WINDOW];
    VIP_UINT8      bytes[WINDOW][SIZE];
};

struct end {
    struct nic    nic;
    struct memory memory;
    struct place *place;
    VIP_VI_HANDLE vi;
};

static void open_end(struct end *end, const struct sides *sides)
{
    int i;

    nic_open(&end->nic, sides->device);
    NEED(end->nic.attributes.ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_DELIVERY); /* compared like this in MP_Lite */
    memory_get(&end->nic, &end->memory, sizeof *end->place, VIP_FALSE);
    end->place = (struct place *)(void *)end->memory.at;
    end->vi = vi_create(&end->nic, NULL, NULL, VIP_FALSE);
    for (i = 0; i < WINDOW; i++) {
        descriptor_fill(&end->place->data[i], VIP_CONTROL_OP_SENDRECV, end->place->bytes[i], end->memory.handle, SIZE);
        descriptor_fill(&end->place->ack[i], VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, NULL, 0, 0);
    }
}

static void close_end(struct end *end)
{
    vi_close(end->vi);
    memory_put(&end->nic, &end->memory);
    nic_close(&end->nic);
}

static VIP_DESCRIPTOR *spin(VIP_VI_HANDLE vi, VIP_RETURN (*take)(VIP_VI_HANDLE, VIP_DESCRIPTOR **))
{
    VIP_DESCRIPTOR *done = NULL;
    VIP_RETURN      result;

    while ((result = take(vi, &done)) == VIP_NOT_DONE)
        continue;
    return completed(result, &done);
}

/* Takes the messages and gives the credits. */
static int server(const struct sides *sides)
{
    struct end      end;
    union address   local;
    VIP_DESCRIPTOR *done;
    char            name[16];
    int             i, owed = 0, next_ack = 0, acks = 0;

    open_end(&end, sides);
    address_of(&end.nic, &local, NULL, test_name(name, sizeof name, sides->owner, 'k'));
    for (i = 0; i < WINDOW; i++) {
        end.place->data[i].CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
        MUST(VipPostRecv(end.vi, &end.place->data[i], end.memory.handle));
    }
    vi_serve(&end.nic, end.vi, &local);
    for (i = 0; i < MESSAGES; i++) {
        done = spin(end.vi, VipRecvDone);
        NEED(done == &end.place->data[i % WINDOW]);
        NEED(done->CS.Length == SIZE && !(done->CS.Status & VIP_STATUS_IMMEDIATE));
        NEED(end.place->bytes[i % WINDOW][0] == (VIP_UINT8)i && end.place->bytes[i % WINDOW][SIZE - 1] == (VIP_UINT8)(i >> 8));
        MUST(VipPostRecv(end.vi, done, end.memory.handle)); /* as it is */
        if (++owed < WINDOW / 2)
            continue;
        if (acks == WINDOW)
            completed(VipSendWait(end.vi, VIP_INFINITE, &done), &done);
        else
            acks++;
        end.place->ack[next_ack].CS.ImmediateData = (VIP_UINT32)owed;
        MUST(VipPostSend(end.vi, &end.place->ack[next_ack], end.memory.handle));
        next_ack = (next_ack + 1) % WINDOW;
        owed = 0;
    }
    while (acks-- > 0)
        completed(VipSendWait(end.vi, VIP_INFINITE, &done), &done);
    vi_await_end(end.vi, SOON_MS);
    close_end(&end);
    return 0;
}

static int client(const struct sides *sides)
{
    struct end      end;
    union address   local, remote;
    VIP_DESCRIPTOR *done;
    VIP_UINT32      credits = WINDOW, returned = 0;
    char            name[16];
    int             i;

    open_end(&end, sides);
    address_of(&end.nic, &local, NULL, "client");
    address_of(&end.nic, &remote, NULL, test_name(name, sizeof name, sides->owner, 'k'));
    for (i = 0; i < WINDOW; i++)
        MUST(VipPostRecv(end.vi, &end.place->ack[i], end.memory.handle));
    MUST(vi_request(end.vi, &local, &remote, SOON_MS));

    for (i = 0; i < MESSAGES || returned < MESSAGES / (WINDOW / 2) * (WINDOW / 2);) {
        if (i == MESSAGES || credits == 0) {
            done = completed(VipRecvWait(end.vi, SOON_MS, &done), &done);
            NEED(done->CS.Status & VIP_STATUS_IMMEDIATE);
            NEED(done->CS.Length == 0 && done->CS.ImmediateData == WINDOW / 2);
            credits += done->CS.ImmediateData;
            returned += done->CS.ImmediateData;
            MUST(VipPostRecv(end.vi, done, end.memory.handle));
            continue;
        }
        credits--;
        done = &end.place->data[i % WINDOW];
        end.place->bytes[i % WINDOW][0] = (VIP_UINT8)i;
        end.place->bytes[i % WINDOW][SIZE - 1] = (VIP_UINT8)(i >> 8);
        done->CS.Length = SIZE; /* completion may have changed it; the rest is as it was */
        MUST(VipPostSend(end.vi, done, end.memory.handle));
        NEED(spin(end.vi, VipSendDone) == done);
        i++;
    }
    close_end(&end);
    return 0;
}

int main(void)
{
    ok(run_pair(test_start(), server, client), 210, "credits by zero-length immediate messages, %d messages", MESSAGES);
    return test_failed;
}
