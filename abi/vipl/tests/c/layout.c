/*
 * layout - statements 1 to 13: sizes, offsets and values, as numbers.  Needs the header only, no library.
 *
 * The header holds the same numbers by assertions of its own; here they are written a second time and printed, because a test
 * that reads them from the header would agree with any mistake in it.
 */
#include <stddef.h>
#include <stdio.h>
#include <vipl.h>

static int failed, statement, checks, failures;

static void begin(int number)
{
    statement = number;
    checks = failures = 0;
}

static void equal(const char *what, unsigned long long value, unsigned long long expected)
{
    checks++;
    if (value == expected)
        return;
    failures++;
    printf("# %d: %s is %#llx, not %#llx\n", statement, what, value, expected);
}

static void end(const char *what)
{
    printf("%sok %d %s (%d values)\n", failures ? "not " : "", statement, what, checks);
    failed |= failures;
}

#define VALUE(name, expected)               equal(#name, (unsigned long long)(name), (expected))
#define BY_MODEL(lp64, ilp32)               (sizeof(void *) == 8 ? (lp64) : (ilp32))
#define SIZE(type, lp64, ilp32)             equal("sizeof " #type, sizeof(type), BY_MODEL(lp64, ilp32))
#define OFFSET(type, member, lp64, ilp32)   equal(#type "." #member, offsetof(type, member), BY_MODEL(lp64, ilp32))

static void descriptors(void)
{
    VIP_DESCRIPTOR descriptor;

    begin(1);
    SIZE(VIP_CONTROL_SEGMENT, 32, 32);
    OFFSET(VIP_CONTROL_SEGMENT, Next, 0, 0);
    OFFSET(VIP_CONTROL_SEGMENT, NextHandle, 8, 8);
    OFFSET(VIP_CONTROL_SEGMENT, SegCount, 12, 12);
    OFFSET(VIP_CONTROL_SEGMENT, Control, 14, 14);
    OFFSET(VIP_CONTROL_SEGMENT, Reserved, 16, 16);
    OFFSET(VIP_CONTROL_SEGMENT, ImmediateData, 20, 20);
    OFFSET(VIP_CONTROL_SEGMENT, Length, 24, 24);
    OFFSET(VIP_CONTROL_SEGMENT, Status, 28, 28);
    end("control segment");

    begin(2);
    SIZE(VIP_ADDRESS_SEGMENT, 16, 16);
    OFFSET(VIP_ADDRESS_SEGMENT, Data, 0, 0);
    OFFSET(VIP_ADDRESS_SEGMENT, Handle, 8, 8);
    OFFSET(VIP_ADDRESS_SEGMENT, Reserved, 12, 12);
    SIZE(VIP_DATA_SEGMENT, 16, 16);
    OFFSET(VIP_DATA_SEGMENT, Data, 0, 0);
    OFFSET(VIP_DATA_SEGMENT, Handle, 8, 8);
    OFFSET(VIP_DATA_SEGMENT, Length, 12, 12);
    SIZE(VIP_DESCRIPTOR_SEGMENT, 16, 16);
    end("address and data segments");

    begin(3);
    SIZE(VIP_DESCRIPTOR, 64, 64);
    OFFSET(VIP_DESCRIPTOR, CS, 0, 0);
    OFFSET(VIP_DESCRIPTOR, Control, 0, 0);
    OFFSET(VIP_DESCRIPTOR, DS, 32, 32);
    OFFSET(VIP_DESCRIPTOR, Data, 32, 32);
    descriptor.Control.Status = 0x12345678;
    equal("CS.Status after Control.Status", descriptor.CS.Status, 0x12345678);
    descriptor.DS[1].Local.Length = 0x87654321;
    equal("Data[1].Length after DS[1].Local.Length", descriptor.Data[1].Length, 0x87654321);
    end("descriptor, both spellings");

    begin(4);
    SIZE(VIP_PVOID64, 8, 8);
    end("64-bit address");
}

static void attributes(void)
{
    begin(5);
    SIZE(VIP_NIC_ATTRIBUTES, 200, 136);
    OFFSET(VIP_NIC_ATTRIBUTES, Name, 0, 0);
    OFFSET(VIP_NIC_ATTRIBUTES, HardwareVersion, 64, 64);
    OFFSET(VIP_NIC_ATTRIBUTES, ProviderVersion, 72, 68);
    OFFSET(VIP_NIC_ATTRIBUTES, NicAddressLen, 80, 72);
    OFFSET(VIP_NIC_ATTRIBUTES, LocalNicAddress, 88, 76);
    OFFSET(VIP_NIC_ATTRIBUTES, ThreadSafe, 96, 80);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen, 100, 84);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxRegisterBytes, 104, 88);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxRegisterRegions, 112, 92);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxRegisterBlockBytes, 120, 96);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxVI, 128, 100);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxDescriptorsPerQueue, 136, 104);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxSegmentsPerDesc, 144, 108);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxCQ, 152, 112);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxCQEntries, 160, 116);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxTransferSize, 168, 120);
    OFFSET(VIP_NIC_ATTRIBUTES, NativeMTU, 176, 124);
    OFFSET(VIP_NIC_ATTRIBUTES, MaxPtags, 184, 128);
    OFFSET(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport, 192, 132);
    OFFSET(VIP_NIC_ATTRIBUTES, RDMAReadSupport, 194, 134);
    end("NIC attributes");

    begin(6);
    SIZE(VIP_VI_ATTRIBUTES, 40, 24);
    OFFSET(VIP_VI_ATTRIBUTES, ReliabilityLevel, 0, 0);
    OFFSET(VIP_VI_ATTRIBUTES, MaxTransferSize, 8, 4);
    OFFSET(VIP_VI_ATTRIBUTES, QoS, 16, 8);
    OFFSET(VIP_VI_ATTRIBUTES, Ptag, 24, 12);
    OFFSET(VIP_VI_ATTRIBUTES, EnableRdmaWrite, 32, 16);
    OFFSET(VIP_VI_ATTRIBUTES, EnableRdmaRead, 36, 20);
    SIZE(VIP_MEM_ATTRIBUTES, 16, 12);
    OFFSET(VIP_MEM_ATTRIBUTES, Ptag, 0, 0);
    OFFSET(VIP_MEM_ATTRIBUTES, EnableRdmaWrite, 8, 4);
    OFFSET(VIP_MEM_ATTRIBUTES, EnableRdmaRead, 12, 8);
    SIZE(VIP_ERROR_DESCRIPTOR, 48, 28);
    OFFSET(VIP_ERROR_DESCRIPTOR, NicHandle, 0, 0);
    OFFSET(VIP_ERROR_DESCRIPTOR, ViHandle, 8, 4);
    OFFSET(VIP_ERROR_DESCRIPTOR, CQHandle, 16, 8);
    OFFSET(VIP_ERROR_DESCRIPTOR, DescriptorPtr, 24, 12);
    OFFSET(VIP_ERROR_DESCRIPTOR, OpCode, 32, 16);
    OFFSET(VIP_ERROR_DESCRIPTOR, ResourceCode, 40, 20);
    OFFSET(VIP_ERROR_DESCRIPTOR, ErrorCode, 44, 24);
    SIZE(VIP_AUTODISCOVERY_LIST, 24, 12);
    OFFSET(VIP_AUTODISCOVERY_LIST, NumberOfHops, 0, 0);
    OFFSET(VIP_AUTODISCOVERY_LIST, ADAddrArray, 8, 4);
    OFFSET(VIP_AUTODISCOVERY_LIST, NumAdAddrs, 16, 8);
    end("VI and memory attributes, error descriptor, autodiscovery list");

    begin(7);
    SIZE(VIP_NET_ADDRESS, 6, 6);
    OFFSET(VIP_NET_ADDRESS, HostAddressLen, 0, 0);
    OFFSET(VIP_NET_ADDRESS, DiscriminatorLen, 2, 2);
    OFFSET(VIP_NET_ADDRESS, HostAddress, 4, 4);
    end("net address");
}

static void codes(void)
{
    begin(8);
    VALUE(VIP_SUCCESS, 0);
    VALUE(VIP_NOT_DONE, 1);
    VALUE(VIP_INVALID_PARAMETER, 2);
    VALUE(VIP_ERROR_RESOURCE, 3);
    VALUE(VIP_TIMEOUT, 4);
    VALUE(VIP_REJECT, 5);
    VALUE(VIP_INVALID_RELIABILITY_LEVEL, 6);
    VALUE(VIP_INVALID_MTU, 7);
    VALUE(VIP_INVALID_QOS, 8);
    VALUE(VIP_INVALID_PTAG, 9);
    VALUE(VIP_INVALID_RDMAREAD, 10);
    VALUE(VIP_DESCRIPTOR_ERROR, 11);
    VALUE(VIP_INVALID_STATE, 12);
    VALUE(VIP_ERROR_NAMESERVICE, 13);
    VALUE(VIP_NO_MATCH, 14);
    SIZE(VIP_RETURN, sizeof(int), sizeof(int));
    end("VIP_RETURN 0 to 14");

    begin(9);
    VALUE(VIP_NOT_REACHABLE, 15);
    VALUE(VIP_ERROR_NOT_SUPPORTED, 16);
    VALUE(VIP_ERROR, 11);
    end("VIP_RETURN 15 and 16, VIP_ERROR");

    begin(10);
    VALUE(VIP_STATE_IDLE, 0);
    VALUE(VIP_STATE_CONNECTED, 1);
    VALUE(VIP_STATE_CONNECT_PENDING, 2);
    VALUE(VIP_STATE_ERROR, 3);
    end("VIP_VI_STATE");
}

static void bits(void)
{
    begin(11);
    VALUE(VIP_CONTROL_OP_MASK, 0x0003);
    VALUE(VIP_CONTROL_OP_SENDRECV, 0x0000);
    VALUE(VIP_CONTROL_OP_RDMAWRITE, 0x0001);
    VALUE(VIP_CONTROL_OP_RDMAREAD, 0x0002);
    VALUE(VIP_CONTROL_OP_RESERVED, 0x0003);
    VALUE(VIP_CONTROL_IMMEDIATE, 0x0004);
    VALUE(VIP_CONTROL_QFENCE, 0x0008);
    VALUE(VIP_CONTROL_RESERVED, 0xFFF0);
    VALUE(VIP_DESCRIPTOR_ALIGNMENT, 64);
    VALUE(VIP_SERVICE_UNRELIABLE, 0x01);
    VALUE(VIP_SERVICE_RELIABLE_DELIVERY, 0x02);
    VALUE(VIP_SERVICE_RELIABLE_RECEPTION, 0x04);
    VALUE(VIP_BASE_SERVICES, 0x07);
    VALUE(VIP_SERVICE_ACK, 1 << 14);
    VALUE(VIP_SERVICE_DFC, 1 << 15);
    VALUE(VIP_SMI_AUTODISCOVERY, 1);
    VALUE(VIP_TRUE, 1);
    VALUE(VIP_FALSE, 0);
    VALUE(VIP_INFINITE, (unsigned long)-1);
    end("control bits, reliability levels");

    begin(12);
    VALUE(VIP_STATUS_DONE, 0x00000001);
    VALUE(VIP_STATUS_FORMAT_ERROR, 0x00000002);
    VALUE(VIP_STATUS_PROTECTION_ERROR, 0x00000004);
    VALUE(VIP_STATUS_LENGTH_ERROR, 0x00000008);
    VALUE(VIP_STATUS_PARTIAL_ERROR, 0x00000010);
    VALUE(VIP_STATUS_DESC_FLUSHED_ERROR, 0x00000020);
    VALUE(VIP_STATUS_TRANSPORT_ERROR, 0x00000040);
    VALUE(VIP_STATUS_RDMA_PROT_ERROR, 0x00000080);
    VALUE(VIP_STATUS_REMOTE_DESC_ERROR, 0x00000100);
    VALUE(VIP_STATUS_ERROR_MASK, 0x000001FE);
    VALUE(VIP_STATUS_OP_MASK, 0x00070000);
    VALUE(VIP_STATUS_OP_SEND, 0x00000000);
    VALUE(VIP_STATUS_OP_RECEIVE, 0x00010000);
    VALUE(VIP_STATUS_OP_RDMA_WRITE, 0x00020000);
    VALUE(VIP_STATUS_OP_REMOTE_RDMA_WRITE, 0x00030000);
    VALUE(VIP_STATUS_OP_RDMA_READ, 0x00040000);
    VALUE(VIP_STATUS_IMMEDIATE, 0x00080000);
    VALUE(VIP_STATUS_RESERVED, 0xFFF0FE00);
    equal("all status bits together",
          (unsigned)VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK | VIP_STATUS_OP_MASK | VIP_STATUS_IMMEDIATE | VIP_STATUS_RESERVED,
          0xFFFFFFFF);
    end("status bits");

    begin(13);
    VALUE(VIP_ERROR_POST_DESC, 0);
    VALUE(VIP_ERROR_CONN_LOST, 1);
    VALUE(VIP_ERROR_RECVQ_EMPTY, 2);
    VALUE(VIP_ERROR_VI_OVERRUN, 3);
    VALUE(VIP_ERROR_RDMAW_PROT, 4);
    VALUE(VIP_ERROR_RDMAW_DATA, 5);
    VALUE(VIP_ERROR_RDMAW_ABORT, 6);
    VALUE(VIP_ERROR_RDMAR_PROT, 7);
    VALUE(VIP_ERROR_COMP_PROT, 8);
    VALUE(VIP_ERROR_RDMA_TRANSPORT, 9);
    VALUE(VIP_ERROR_CATASTROPHIC, 10);
    VALUE(VIP_RESOURCE_NIC, 0);
    VALUE(VIP_RESOURCE_VI, 1);
    VALUE(VIP_RESOURCE_CQ, 2);
    VALUE(VIP_RESOURCE_DESCRIPTOR, 3);
    end("VIP_ERROR_CODE, VIP_RESOURCE_CODE");
}

int main(void)
{
    descriptors();
    attributes();
    codes();
    bits();
    return failed != 0;
}
