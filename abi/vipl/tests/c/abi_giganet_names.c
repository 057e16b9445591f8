/* abi_giganet_names - statement 15: a program that spells descriptors as Giganet does compiles and runs. */
#define VIPL_VOLATILE_SEGMENTS
#include "test.h"

int main(void)
{
    struct verdict verdict = {15, 0, 0, "Giganet's names: Control, Data[]; callback types; user data; volatile segments"};
    const char    *device = test_start();
    struct nic     nic;
    struct memory  memory;
    VIP_DESCRIPTOR *descriptor, *done = NULL;
    VIP_VI_HANDLE  vi;
    VIP_ERROR_HANDLER handler = on_error;
    int            mark;

    nic_open(&nic, device);
    RETURNS(&verdict, VIP_SUCCESS, VipErrorCallback(nic.handle, &mark, handler));
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    vi = vi_create(&nic, NULL, NULL, VIP_FALSE);
    check(&verdict, VipGetUserData(vi) == NULL, "the user data of a new VI");
    VipSetUserData(vi, &mark);
    check(&verdict, VipGetUserData(vi) == &mark, "user data");

    descriptor = descriptor_at(&memory, 0);
    descriptor->Control.SegCount = 1;
    descriptor->Control.Control = VIP_CONTROL_OP_SENDRECV;
    descriptor->Control.Length = 100;
    descriptor->Control.Status = 0;
    descriptor->Data[0].Data.Address = memory.at + 1024;
    descriptor->Data[0].Handle = memory.handle;
    descriptor->Data[0].Length = 100;
    RETURNS(&verdict, VIP_SUCCESS, VipPostRecv(vi, descriptor, memory.handle));
    RETURNS(&verdict, VIP_NOT_DONE, VipRecvDone(vi, &done));
    RETURNS(&verdict, VIP_SUCCESS, VipDisconnect(vi));
    RETURNS(&verdict, VIP_DESCRIPTOR_ERROR, VipRecvDone(vi, &done));
    check(&verdict, done == descriptor, "another descriptor came back");
    check(&verdict, descriptor->Control.Status == (VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE),
          "status %08x", (unsigned)descriptor->Control.Status);

    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    conclude(&verdict);
    return test_failed;
}
