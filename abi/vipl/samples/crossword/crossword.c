/*
 * crossword - a client has a puzzle, a server has the answers.
 *
 * The client sends a clue's number and where in its memory the answer belongs; the server writes the answer there by RDMA, with
 * the clue's number as immediate data, so that a receive completes at the client when the answer is in place.  Only answers
 * across are asked for: they are contiguous in memory.
 */
#include "../common.h"

enum { ROWS = 7, COLUMNS = 12, LIMIT_MS = 10000 };

struct clue {
    VIP_UINT32  number; /* 0 says goodbye */
    int         row, column;
    const char *question;
    const char *answer;
};

/* The client reads all but the answers, the server the answers only. */
static const struct clue clues[] = {
    {1, 0, 0, "It rings when there is work", "DOORBELL"},
    {2, 2, 2, "What a work queue is made of", "DESCRIPTOR"},
    {3, 4, 1, "To pin and announce memory", "REGISTER"},
    {4, 6, 0, "Two of them make a VI", "QUEUE"},
    {5, 6, 6, "Who sits at the other end", "PEER"},
};
enum { CLUES = sizeof clues / sizeof clues[0] };

/* What goes over the wire, in the byte order of the hosts, which is one host's here. */
struct request {
    VIP_UINT64     place;
    VIP_MEM_HANDLE handle;
    VIP_UINT32     number;
    VIP_UINT32     length;
    VIP_UINT32     reserved;
};

/* One block of registered memory for each side. */
struct client_memory {
    VIP_DESCRIPTOR send, recv;
    struct request request;
    char           puzzle[ROWS][COLUMNS + 1];
};

struct server_memory {
    VIP_DESCRIPTOR send, recv;
    struct request request;
    char           answer[COLUMNS];
};

struct options {
    const char *device, *host, *name;
};

static size_t room(const struct clue *clue)
{
    size_t length = strlen(clue->answer);

    return length < (size_t)(COLUMNS - clue->column) ? length : (size_t)(COLUMNS - clue->column);
}

static void print_puzzle(const char *title, char puzzle[ROWS][COLUMNS + 1])
{
    int row;

    printf("%s\n", title);
    for (row = 0; row < ROWS; row++)
        printf("    %.*s\n", COLUMNS, puzzle[row]);
}

static void ask(VIP_VI_HANDLE vi, struct client_memory *at, VIP_MEM_HANDLE handle, const struct clue *clue)
{
    VIP_DESCRIPTOR *done;

    memset(&at->request, 0, sizeof at->request);
    if (clue) {
        at->request.number = clue->number;
        at->request.place = (uintptr_t)&at->puzzle[clue->row][clue->column];
        at->request.length = (VIP_UINT32)room(clue);
    }
    at->request.handle = handle;

    /* The receive is posted before the question is sent: an answer that found none would break the connection. */
    descriptor_fill(&at->recv, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(vi, &at->recv, handle));
    descriptor_fill(&at->send, VIP_CONTROL_OP_SENDRECV, &at->request, handle, sizeof at->request);
    MUST(VipPostSend(vi, &at->send, handle));
    completed(VipSendWait(vi, VIP_INFINITE, &done), &done);

    completed(VipRecvWait(vi, LIMIT_MS, &done), &done);
    NEED(done->CS.Status & VIP_STATUS_IMMEDIATE);
    NEED(done->CS.ImmediateData == at->request.number);
    if (clue) {
        NEED((done->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_REMOTE_RDMA_WRITE);
        NEED(done->CS.Length == at->request.length);
    }
}

static int client(const struct options *options)
{
    struct nic            nic;
    struct memory         memory;
    struct client_memory *at;
    union address         local, remote;
    VIP_VI_HANDLE         vi;
    VIP_RETURN            result;
    size_t                i;

    nic_open(&nic, options->device);
    memory_get(&nic, &memory, sizeof *at, VIP_TRUE);
    at = (struct client_memory *)(void *)memory.at;
    for (i = 0; i < ROWS; i++)
        memset(at->puzzle[i], '#', COLUMNS);
    for (i = 0; i < CLUES; i++)
        memset(&at->puzzle[clues[i].row][clues[i].column], '.', room(&clues[i]));

    vi = vi_create(&nic, NULL, NULL, VIP_TRUE);
    address_of(&nic, &local, NULL, "solver");
    address_of(&nic, &remote, options->host, options->name);
    result = vi_request(vi, &local, &remote, LIMIT_MS);
    if (result != VIP_SUCCESS)
        die("cannot connect to '%s': %s", options->name, result_name(result));

    print_puzzle("The puzzle:", at->puzzle);
    for (i = 0; i < CLUES; i++) {
        printf("%u across: %s?\n", (unsigned)clues[i].number, clues[i].question);
        ask(vi, at, memory.handle, &clues[i]);
    }
    print_puzzle("Solved:", at->puzzle);
    for (i = 0; i < CLUES; i++)
        NEED(memcmp(&at->puzzle[clues[i].row][clues[i].column], clues[i].answer, room(&clues[i])) == 0);
    ask(vi, at, memory.handle, NULL);

    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    return 0;
}

static void answer(VIP_VI_HANDLE vi, struct server_memory *at, VIP_MEM_HANDLE handle, const struct request *request)
{
    VIP_DESCRIPTOR *done;
    size_t          i;

    if (request->number == 0) {
        descriptor_fill(&at->send, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, NULL, 0, 0);
    } else {
        for (i = 0; i < CLUES && clues[i].number != request->number; i++)
            continue;
        if (i == CLUES || request->length > strlen(clues[i].answer))
            die("the client asks for clue %u of %u letters", (unsigned)request->number, (unsigned)request->length);
        memcpy(at->answer, clues[i].answer, request->length);
        descriptor_fill_rdma(&at->send, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, request->place, request->handle,
                             at->answer, handle, request->length);
    }
    at->send.CS.ImmediateData = request->number;
    MUST(VipPostSend(vi, &at->send, handle));
    completed(VipSendWait(vi, VIP_INFINITE, &done), &done);
}

static void post_request(VIP_VI_HANDLE vi, struct server_memory *at, VIP_MEM_HANDLE handle)
{
    descriptor_fill(&at->recv, VIP_CONTROL_OP_SENDRECV, &at->request, handle, sizeof at->request);
    MUST(VipPostRecv(vi, &at->recv, handle));
}

static int server(const struct options *options)
{
    struct nic            nic;
    struct memory         memory;
    struct server_memory *at;
    struct request        request;
    union address         local;
    VIP_DESCRIPTOR       *done;
    VIP_VI_HANDLE         vi;

    nic_open(&nic, options->device);
    memory_get(&nic, &memory, sizeof *at, VIP_FALSE);
    at = (struct server_memory *)(void *)memory.at;
    vi = vi_create(&nic, NULL, NULL, VIP_FALSE);
    post_request(vi, at, memory.handle);
    address_of(&nic, &local, NULL, options->name);
    vi_serve(&nic, vi, &local);

    do {
        completed(VipRecvWait(vi, VIP_INFINITE, &done), &done);
        NEED(done->CS.Length == sizeof request);
        request = at->request;
        post_request(vi, at, memory.handle); /* before the answer, for it lets the client ask again */
        answer(vi, at, memory.handle, &request);
    } while (request.number != 0);

    /* The goodbye has been answered.  The client closes first; disconnecting here could overtake that answer. */
    vi_await_end(vi, LIMIT_MS);
    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    return 0;
}

static int either(int index, const void *options)
{
    return index == 0 ? server(options) : client(options);
}

int main(int argc, char **argv)
{
    static const char words[] = "server|client|--self [options]";
    struct options    options = {"shm", NULL, "crossword"};
    int               self = 0;
    const struct option known[] = {
        {"device", &options.device, NULL, NULL, "device name (shm)"},
        {"host", &options.host, NULL, NULL, "client: the server's host, for the name service (this host)"},
        {"name", &options.name, NULL, NULL, "discriminator, at most 16 letters (crossword)"},
        {"self", NULL, NULL, &self, "start both sides"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    const char *side = arguments(argc, argv, words, known);

    if (self)
        return !run_sides(2, either, &options);
    if (side && strcmp(side, "server") == 0)
        return server(&options);
    if (side && strcmp(side, "client") == 0)
        return client(&options);
    usage(argv[0], words, known);
}
