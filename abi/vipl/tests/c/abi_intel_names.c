/* abi_intel_names - statement 15: a program that spells descriptors as Intel does compiles and runs. */
#include "test.h"

int main(void)
{
    struct verdict verdict = {15, 0, 0, "Intel's names: CS, DS[].Local, DS[].Remote"};
    const char    *device = test_start();
    struct nic     nic;
    struct memory  memory;
    VIP_DESCRIPTOR *descriptor, *done = NULL;
    VIP_VI_HANDLE  vi;

    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    vi = vi_create(&nic, NULL, NULL, VIP_FALSE);
    descriptor = descriptor_at(&memory, 0);

    /* A send while idle comes back flushed, which is enough to see that both sides mean the same words. */
    descriptor->CS.SegCount = 2;
    descriptor->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    descriptor->CS.Reserved = 0;
    descriptor->CS.Length = 100;
    descriptor->CS.Status = 0;
    descriptor->DS[0].Remote.Data.Address = memory.at + 2048;
    descriptor->DS[0].Remote.Handle = memory.handle;
    descriptor->DS[0].Remote.Reserved = 0;
    descriptor->DS[1].Local.Data.Address = memory.at + 1024;
    descriptor->DS[1].Local.Handle = memory.handle;
    descriptor->DS[1].Local.Length = 100;
    RETURNS(&verdict, VIP_SUCCESS, VipPostSend(vi, descriptor, memory.handle));
    RETURNS(&verdict, VIP_DESCRIPTOR_ERROR, VipSendWait(vi, SOON_MS, &done));
    check(&verdict, done == descriptor, "another descriptor came back");
    check(&verdict, descriptor->CS.Status == (VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RDMA_WRITE),
          "status %08x", (unsigned)descriptor->CS.Status);
    check(&verdict, descriptor->CS.Length == 0, "length %u", (unsigned)descriptor->CS.Length);
    check(&verdict, descriptor->CS.SegCount == 2 && descriptor->DS[1].Local.Length == 100, "the provider wrote to its input");

    vi_close(vi);
    memory_put(&nic, &memory);
    nic_close(&nic);
    conclude(&verdict);
    return test_failed;
}
