/*
 * calls.h - every call that takes a handle of a kind, made with one that must be refused and with good arguments otherwise.
 * For statements 59, 75, 204 and 205.
 */
#ifndef SOVIA_VIPL_CALLS_H
#define SOVIA_VIPL_CALLS_H

#include "test.h"

struct calls {
    struct verdict *verdict;
    struct nic     *nic;
    struct memory  *memory; /* a page at least */
    VIP_VI_HANDLE   vi;     /* idle */
    union address  *address;
};

static inline void no_vi_handler(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    (void)context, (void)nic, (void)vi, (void)descriptor;
    die("a handler was called that had been refused");
}

static inline void no_cq_handler(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue)
{
    (void)context, (void)nic, (void)vi, (void)recv_queue;
    die("a handler was called that had been refused");
}

static inline VIP_VI_ATTRIBUTES good_vi_attributes(const struct nic *nic)
{
    VIP_VI_ATTRIBUTES attributes;

    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = nic_level(nic);
    attributes.MaxTransferSize = nic->attributes.MaxTransferSize;
    attributes.Ptag = nic->ptag;
    return attributes;
}

#define REFUSED(call)                                                                                                \
    do {                                                                                                             \
        VIP_RETURN refused_result = (call);                                                                          \
        check(calls->verdict, refused_result == VIP_INVALID_PARAMETER, "%s with %s %p: %s", #call, what, bad,        \
              result_name(refused_result));                                                                          \
    } while (0)

static inline void calls_with_nic(const struct calls *calls, VIP_NIC_HANDLE bad, const char *what)
{
    VIP_NIC_ATTRIBUTES     nic_attributes;
    VIP_MEM_ATTRIBUTES     mem_attributes = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_VI_ATTRIBUTES      vi_attributes = good_vi_attributes(calls->nic), remote_attributes;
    VIP_PROTECTION_HANDLE  ptag;
    VIP_MEM_HANDLE         handle;
    VIP_VI_HANDLE          vi;
    VIP_CQ_HANDLE          cq;
    VIP_CONN_HANDLE        connection;
    VIP_AUTODISCOVERY_LIST list = {1, NULL, 0};
    union address          remote;
    char                   name[64] = "localhost";
    VIP_ULONG              name_length = sizeof name;

    mem_attributes.Ptag = calls->nic->ptag;
    memset(&remote, 0, sizeof remote);
    REFUSED(VipCloseNic(bad));
    REFUSED(VipQueryNic(bad, &nic_attributes));
    REFUSED(VipCreatePtag(bad, &ptag));
    REFUSED(VipDestroyPtag(bad, calls->nic->ptag));
    REFUSED(VipRegisterMem(bad, calls->memory->at, 64, &mem_attributes, &handle));
    REFUSED(VipDeregisterMem(bad, calls->memory->at, calls->memory->handle));
    REFUSED(VipSetMemAttributes(bad, calls->memory->at, calls->memory->handle, &mem_attributes));
    REFUSED(VipQueryMem(bad, calls->memory->at, calls->memory->handle, &mem_attributes));
    REFUSED(VipCreateVi(bad, &vi_attributes, NULL, NULL, &vi));
    REFUSED(VipConnectWait(bad, &calls->address->net, 1, &remote.net, &remote_attributes, &connection));
    REFUSED(VipCreateCQ(bad, 16, &cq));
    REFUSED(VipErrorCallback(bad, NULL, on_error));
    REFUSED(VipQuerySystemManagementInfo(bad, VIP_SMI_AUTODISCOVERY, &list));
    REFUSED(VipNSInit(bad, NULL));
    REFUSED(VipNSGetHostByName(bad, name, &remote.net, 0));
    REFUSED(VipNSGetHostByAddr(bad, &calls->address->net, name, &name_length));
    REFUSED(VipNSShutdown(bad));
}

static inline void calls_with_vi(const struct calls *calls, VIP_VI_HANDLE bad, const char *what)
{
    VIP_VI_ATTRIBUTES attributes = good_vi_attributes(calls->nic), queried;
    VIP_VI_STATE      state;
    VIP_BOOLEAN       send_empty, recv_empty;
    VIP_DESCRIPTOR   *descriptor = descriptor_at(calls->memory, 0), *done;
    VIP_MEM_HANDLE    handle = calls->memory->handle;

    descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    REFUSED(VipDestroyVi(bad));
    REFUSED(VipQueryVi(bad, &state, &queried, &send_empty, &recv_empty));
    REFUSED(VipSetViAttributes(bad, &attributes));
    REFUSED(VipConnectRequest(bad, &calls->address->net, &calls->address->net, 1, &queried));
    REFUSED(VipDisconnect(bad));
    REFUSED(VipConnectPeerRequest(bad, &calls->address->net, &calls->address->net, 1));
    REFUSED(VipConnectPeerDone(bad, &queried));
    REFUSED(VipConnectPeerWait(bad, &queried));
    REFUSED(VipPostSend(bad, descriptor, handle));
    REFUSED(VipPostRecv(bad, descriptor, handle));
    REFUSED(VipSendDone(bad, &done));
    REFUSED(VipRecvDone(bad, &done));
    REFUSED(VipSendWait(bad, 1, &done));
    REFUSED(VipRecvWait(bad, 1, &done));
    REFUSED(VipSendNotify(bad, NULL, no_vi_handler));
    REFUSED(VipRecvNotify(bad, NULL, no_vi_handler));
    VipSetUserData(bad, calls->memory->at);
    check(calls->verdict, VipGetUserData(bad) == NULL, "VipGetUserData with %s %p", what, bad);
}

/* NULL is no bad completion queue for VipCreateVi. */
static inline void calls_with_cq(const struct calls *calls, VIP_CQ_HANDLE bad, const char *what)
{
    VIP_VI_ATTRIBUTES attributes = good_vi_attributes(calls->nic);
    VIP_VI_HANDLE     vi;
    VIP_BOOLEAN       recv_queue;

    if (bad) {
        REFUSED(VipCreateVi(calls->nic->handle, &attributes, bad, NULL, &vi));
        REFUSED(VipCreateVi(calls->nic->handle, &attributes, NULL, bad, &vi));
    }
    REFUSED(VipDestroyCQ(bad));
    REFUSED(VipResizeCQ(bad, 16));
    REFUSED(VipCQDone(bad, &vi, &recv_queue));
    REFUSED(VipCQWait(bad, 1, &vi, &recv_queue));
    REFUSED(VipCQNotify(bad, NULL, no_cq_handler));
}

static inline void calls_with_connection(const struct calls *calls, VIP_CONN_HANDLE bad, const char *what)
{
    REFUSED(VipConnectAccept(bad, calls->vi));
    REFUSED(VipConnectReject(bad));
}

#endif
