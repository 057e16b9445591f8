/*
 * vipl.h - VI Provider Library 1.0, as provided by sovia's libvipl.so.
 *
 * Old VIPL source, written for Intel's header or for Giganet's, compiles against this one file unchanged.
 *
 * Marks tell where a statement comes from:
 *   [V] read in a vipl.h or a vendor's manual (Intel 2001, Giganet cLAN 1998, VI-GM 2006)
 *   [U] a program in the field relies on it (Iometer, ARMCI, MP_Lite, Madeleine, MPICH-NT)
 *   [S] the VI Architecture as published papers describe it
 *   [R] recollection of the VIA 1.0 and Developer's Guide texts; unverified
 *   [O] sovia's own choice where no source was found
 *
 * Integers are in host byte order.  Timeouts are milliseconds [V].  Every call validates every handle: a handle that is NULL,
 * stale, of the wrong kind or inherited through fork, and a NULL out pointer, give VIP_INVALID_PARAMETER, never undefined
 * behaviour [O].  This is not repeated below.  When a call fails its out parameters are unspecified except where stated.
 * No call is for signal handlers: one that a signal brings into another call of its thread may wait for ever for what that
 * holds [O].  A handler given to VipSendNotify, VipErrorCallback and their kin must return: pthread_exit there ends the
 * program [O].
 *
 * Strict and compatible: programs of the time relied on liberties that providers took.  They are granted unless the NIC handle
 * is strict; each is marked "(strict: ...)".  A NIC handle is strict when SOVIA_VIPL_STRICT=1 stands in the environment of the
 * call to VipOpenNic, or when the device name given to it ends in ",strict", as in "shm,strict" [O].
 */
#if !defined(_VIPL_) && !defined(_VIPL_H)
#define _VIPL_
#define _VIPL_H

#include <stddef.h>
#include <stdint.h>

/* VIPL095 selects the Intel descriptor in Giganet's header [V].  Here both spellings are always there, so it changes nothing. */

/* Parameter directions. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif

/* Giganet declares the segments volatile [V].  Define VIPL_VOLATILE_SEGMENTS to have that, in C and from C++11 on. */
#ifdef VIPL_VOLATILE_SEGMENTS
#define VIPL_SEGMENT_QUALIFIER_ volatile
#else
#define VIPL_SEGMENT_QUALIFIER_
#endif

/* Anonymous unions are C11 and C++; before C11 they are an extension that -Wpedantic must be told about. */
#if defined(__GNUC__) && !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#define VIPL_ANONYMOUS_ __extension__
#else
#define VIPL_ANONYMOUS_
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Scalars [V] */

typedef void          *VIP_PVOID;
typedef int            VIP_BOOLEAN;
typedef char           VIP_CHAR;
typedef unsigned char  VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long  VIP_ULONG; /* 8 bytes on LP64; programs print it with %lu [U] */
typedef uint8_t        VIP_UINT8;
typedef uint16_t       VIP_UINT16;
typedef uint32_t       VIP_UINT32;
typedef uint64_t       VIP_UINT64;

#define VIP_TRUE  1
#define VIP_FALSE 0

/* Wait without limit.  On LP64 0xFFFFFFFF, that is (unsigned)~0 widened, means the same [U][O]. */
#ifndef VIP_INFINITE
#define VIP_INFINITE ((VIP_ULONG)-1)
#endif

/* Handles: opaque, valid in the process that got them, until closed or destroyed.  NULL is never a NIC, VI, CQ or connection. */

typedef VIP_PVOID  VIP_QOS; /* undefined by VIPL 1.0; pass 0 */
typedef VIP_PVOID  VIP_NIC_HANDLE;
typedef VIP_PVOID  VIP_VI_HANDLE;
typedef VIP_PVOID  VIP_CQ_HANDLE;
typedef VIP_PVOID  VIP_PROTECTION_HANDLE;
typedef VIP_PVOID  VIP_CONN_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE; /* the one handle that is sent to a peer, for RDMA; never 0 [U] */

/* Reliability: a VI has exactly one of the three levels, NIC attributes carry a mask [V]. */

typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_SERVICE_UNRELIABLE         0x01
#define VIP_SERVICE_RELIABLE_DELIVERY  0x02
#define VIP_SERVICE_RELIABLE_RECEPTION 0x04
#define VIP_BASE_SERVICES              0x07    /* Giganet: the mask of the levels */
#define VIP_SERVICE_ACK                0x4000  /* Giganet */
#define VIP_SERVICE_DFC                0x8000  /* Giganet: deferred sends; never reported here */

/* Results.  0-14 are in both old headers, 15 and 16 in Giganet's [V]. */

typedef enum {
    VIP_SUCCESS                   = 0,
    VIP_NOT_DONE                  = 1,  /* still in progress, or nothing has completed */
    VIP_INVALID_PARAMETER         = 2,  /* a handle, pointer or value is invalid */
    VIP_ERROR_RESOURCE            = 3,  /* a limit was hit, memory ran out, or the object is in use */
    VIP_TIMEOUT                   = 4,
    VIP_REJECT                    = 5,  /* the peer rejected the connection */
    VIP_INVALID_RELIABILITY_LEVEL = 6,  /* invalid, unsupported, or not the peer's; likewise the next two */
    VIP_INVALID_MTU               = 7,
    VIP_INVALID_QOS               = 8,
    VIP_INVALID_PTAG              = 9,
    VIP_INVALID_RDMAREAD          = 10, /* RDMA read asked for where it is not supported */
    VIP_DESCRIPTOR_ERROR          = 11, /* descriptor returned with an error status; or NULL: the queue is empty */
    VIP_INVALID_STATE             = 12, /* the VI is in the wrong state for the call */
    VIP_ERROR_NAMESERVICE         = 13,
    VIP_NO_MATCH                  = 14, /* nobody waits for this discriminator */
    VIP_NOT_REACHABLE             = 15, /* no route, or no such host */
    VIP_ERROR_NOT_SUPPORTED       = 16  /* optional feature, absent */
} VIP_RETURN;

/* Programs test some of these with #ifndef and would define their own number [U]. */
#define VIP_SUCCESS                   VIP_SUCCESS
#define VIP_NOT_DONE                  VIP_NOT_DONE
#define VIP_INVALID_PARAMETER         VIP_INVALID_PARAMETER
#define VIP_ERROR_RESOURCE            VIP_ERROR_RESOURCE
#define VIP_TIMEOUT                   VIP_TIMEOUT
#define VIP_REJECT                    VIP_REJECT
#define VIP_INVALID_RELIABILITY_LEVEL VIP_INVALID_RELIABILITY_LEVEL
#define VIP_INVALID_MTU               VIP_INVALID_MTU
#define VIP_INVALID_QOS               VIP_INVALID_QOS
#define VIP_INVALID_PTAG              VIP_INVALID_PTAG
#define VIP_INVALID_RDMAREAD          VIP_INVALID_RDMAREAD
#define VIP_DESCRIPTOR_ERROR          VIP_DESCRIPTOR_ERROR
#define VIP_INVALID_STATE             VIP_INVALID_STATE
#define VIP_ERROR_NAMESERVICE         VIP_ERROR_NAMESERVICE
#define VIP_NO_MATCH                  VIP_NO_MATCH
#define VIP_NOT_REACHABLE             VIP_NOT_REACHABLE
#define VIP_ERROR_NOT_SUPPORTED       VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR                     VIP_DESCRIPTOR_ERROR /* Giganet's older name */

/* State of a VI [V] */

typedef enum {
    VIP_STATE_IDLE            = 0,
    VIP_STATE_CONNECTED       = 1,
    VIP_STATE_CONNECT_PENDING = 2,
    VIP_STATE_ERROR           = 3  /* connection lost or broken; VipDisconnect leads back to idle */
} VIP_VI_STATE;

#define VIP_STATE_IDLE            VIP_STATE_IDLE
#define VIP_STATE_CONNECTED       VIP_STATE_CONNECTED
#define VIP_STATE_CONNECT_PENDING VIP_STATE_CONNECT_PENDING
#define VIP_STATE_ERROR           VIP_STATE_ERROR

/* Descriptors [V].  The consumer aligns them to 64 bytes, inside one registered region. */

#define VIP_DESCRIPTOR_ALIGNMENT 64

/* VIP_CONTROL_SEGMENT.Control */
#define VIP_CONTROL_OP_MASK      0x0003
#define VIP_CONTROL_OP_SENDRECV  0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD  0x0002
#define VIP_CONTROL_OP_RESERVED  0x0003
#define VIP_CONTROL_IMMEDIATE    0x0004 /* ImmediateData is sent along; ignored in a posted receive [U] */
#define VIP_CONTROL_QFENCE       0x0008 /* start only after all earlier RDMA reads of this queue [R] */
#define VIP_CONTROL_RESERVED     0xFFF0 /* must be 0 [R] */

/* VIP_CONTROL_SEGMENT.Status.  On completion DONE, the operation, and at most one error bit. */
#define VIP_STATUS_DONE                 0x00000001
#define VIP_STATUS_FORMAT_ERROR         0x00000002 /* malformed descriptor, or RDMA read without support */
#define VIP_STATUS_PROTECTION_ERROR     0x00000004 /* a local segment is not in a region with the VI's tag */
#define VIP_STATUS_LENGTH_ERROR         0x00000008 /* send too long; message longer than the posted segments */
#define VIP_STATUS_PARTIAL_ERROR        0x00000010 /* only part of the message arrived or left */
#define VIP_STATUS_DESC_FLUSHED_ERROR   0x00000020 /* the VI left the connected state, or was not in it */
#define VIP_STATUS_TRANSPORT_ERROR      0x00000040 /* reliable levels: delivery could not be completed */
#define VIP_STATUS_RDMA_PROT_ERROR      0x00000080 /* the remote range is not permitted */
#define VIP_STATUS_REMOTE_DESC_ERROR    0x00000100 /* reliable reception: the peer's receive was missing or faulty */
#define VIP_STATUS_ERROR_MASK           0x000001FE
#define VIP_STATUS_OP_MASK              0x00070000
#define VIP_STATUS_OP_SEND              0x00000000
#define VIP_STATUS_OP_RECEIVE           0x00010000
#define VIP_STATUS_OP_RDMA_WRITE        0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000 /* receive consumed by the peer's RDMA write with immediate data */
#define VIP_STATUS_OP_RDMA_READ         0x00040000
#define VIP_STATUS_IMMEDIATE            0x00080000 /* ImmediateData is valid */
#define VIP_STATUS_RESERVED             0xFFF0FE00

struct _VIP_DESCRIPTOR;

/* An address, 8 bytes on every host.  A 32-bit provider ignores the upper half [O]. */
typedef union _VIP_PVOID64 {
    VIP_UINT64              AddressBits;
    VIP_PVOID               Address;
    struct _VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

/* 32 bytes [V][S].  Status is the last word written on completion; it may be polled [S]. */
typedef VIPL_SEGMENT_QUALIFIER_ struct _VIP_CONTROL_SEGMENT {
    VIP_PVOID64    Next;          /* the provider's, from post on */
    VIP_MEM_HANDLE NextHandle;    /* likewise */
    VIP_UINT16     SegCount;      /* 16-byte segments that follow, address segment included [U] */
    VIP_UINT16     Control;       /* VIP_CONTROL_... */
    VIP_UINT32     Reserved;      /* 0 */
    VIP_UINT32     ImmediateData;
    VIP_UINT32     Length;        /* bytes: of all data segments when sending; transferred, on completion */
    VIP_UINT32     Status;        /* VIP_STATUS_...; a stale value may be left when posting [U] */
} VIP_CONTROL_SEGMENT;

/* 16 bytes: the remote side of an RDMA operation; always the first segment of one. */
typedef VIPL_SEGMENT_QUALIFIER_ struct _VIP_ADDRESS_SEGMENT {
    VIP_PVOID64    Data;   /* the peer's virtual address */
    VIP_MEM_HANDLE Handle; /* the peer's memory handle */
    VIP_UINT32     Reserved;
} VIP_ADDRESS_SEGMENT;

/* 16 bytes: local memory. */
typedef VIPL_SEGMENT_QUALIFIER_ struct _VIP_DATA_SEGMENT {
    VIP_PVOID64    Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32     Length; /* bytes */
} VIP_DATA_SEGMENT;

typedef union _VIP_DESCRIPTOR_SEGMENT {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT    Local;
} VIP_DESCRIPTOR_SEGMENT;

/*
 * 64 bytes, so that every element of an aligned array is aligned [U].  Intel and M-VIA programs say CS and DS[i].Local, Giganet
 * programs Control and Data[i].  For more than two segments allocate sizeof(VIP_DESCRIPTOR) + n * 16, rounded up to 64 [U].
 * The provider touches nothing beyond 32 + 16 * SegCount bytes: what lies there is the consumer's [U].
 */
VIPL_ANONYMOUS_ typedef struct _VIP_DESCRIPTOR {
    union {
        VIP_CONTROL_SEGMENT CS;
        VIP_CONTROL_SEGMENT Control;
    };
    union {
        VIP_DESCRIPTOR_SEGMENT DS[2];
        VIP_DATA_SEGMENT       Data[2];
    };
} VIP_DESCRIPTOR;

/*
 * HostAddressLen bytes of host address, then at once DiscriminatorLen bytes of discriminator [V].  Allocate at least
 * 4 + NicAddressLen + MaxDiscriminatorLen bytes; that is never more than 40 [U][O].
 */
typedef struct _VIP_NET_ADDRESS {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8  HostAddress[1];
} VIP_NET_ADDRESS;

/* Fixed from provider start on [V].  All limits are finite and enforced with VIP_ERROR_RESOURCE. */
typedef struct _VIP_NIC_ATTRIBUTES {
    VIP_CHAR              Name[64];                /* device name, NUL terminated */
    VIP_ULONG             HardwareVersion;
    VIP_ULONG             ProviderVersion;
    VIP_UINT16            NicAddressLen;           /* bytes of the host part of an address */
    const VIP_UINT8      *LocalNicAddress;         /* valid until the NIC handle is closed [O] */
    VIP_BOOLEAN           ThreadSafe;
    VIP_UINT16            MaxDiscriminatorLen;     /* bytes */
    VIP_ULONG             MaxRegisterBytes;        /* in all regions together */
    VIP_ULONG             MaxRegisterRegions;
    VIP_ULONG             MaxRegisterBlockBytes;   /* in one region */
    VIP_ULONG             MaxVI;
    VIP_ULONG             MaxDescriptorsPerQueue;
    VIP_ULONG             MaxSegmentsPerDesc;      /* data segments */
    VIP_ULONG             MaxCQ;
    VIP_ULONG             MaxCQEntries;            /* per CQ */
    VIP_ULONG             MaxTransferSize;         /* bytes per descriptor, at least 32768 [U] */
    VIP_ULONG             NativeMTU;               /* bytes, informational */
    VIP_ULONG             MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* mask */
    VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* mask of the levels with RDMA read */
} VIP_NIC_ATTRIBUTES;

typedef struct _VIP_VI_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL ReliabilityLevel; /* exactly one bit */
    VIP_ULONG             MaxTransferSize;  /* bytes per descriptor */
    VIP_QOS               QoS;              /* 0 */
    VIP_PROTECTION_HANDLE Ptag;             /* NULL: any region of this NIC handle (strict: VIP_INVALID_PTAG) [U][O] */
    VIP_BOOLEAN           EnableRdmaWrite;  /* accept the peer's RDMA writes */
    VIP_BOOLEAN           EnableRdmaRead;   /* accept the peer's RDMA reads */
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag; /* NULL: any VI of this NIC handle (strict: VIP_INVALID_PTAG) [U][O] */
    VIP_BOOLEAN           EnableRdmaWrite;
    VIP_BOOLEAN           EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

/* Asynchronous errors: those that fit in no descriptor [V] */

typedef enum {
    VIP_RESOURCE_NIC        = 0,
    VIP_RESOURCE_VI         = 1,
    VIP_RESOURCE_CQ         = 2,
    VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

#define VIP_RESOURCE_NIC        VIP_RESOURCE_NIC
#define VIP_RESOURCE_VI         VIP_RESOURCE_VI
#define VIP_RESOURCE_CQ         VIP_RESOURCE_CQ
#define VIP_RESOURCE_DESCRIPTOR VIP_RESOURCE_DESCRIPTOR

typedef enum {
    VIP_ERROR_POST_DESC      = 0,  /* misaligned, or outside its region, or another tag; not queued */
    VIP_ERROR_CONN_LOST      = 1,  /* the VI is in VIP_STATE_ERROR */
    VIP_ERROR_RECVQ_EMPTY    = 2,  /* a message found no receive */
    VIP_ERROR_VI_OVERRUN     = 3,  /* more than MaxDescriptorsPerQueue; not queued */
    VIP_ERROR_RDMAW_PROT     = 4,  /* incoming RDMA write: not permitted */
    VIP_ERROR_RDMAW_DATA     = 5,  /* incoming RDMA write: corrupt data */
    VIP_ERROR_RDMAW_ABORT    = 6,  /* incoming RDMA write: only part arrived */
    VIP_ERROR_RDMAR_PROT     = 7,  /* incoming RDMA read: not permitted [R] */
    VIP_ERROR_COMP_PROT      = 8,  /* a completion could not be written [R] */
    VIP_ERROR_RDMA_TRANSPORT = 9,  /* an RDMA operation was cut off [R] */
    VIP_ERROR_CATASTROPHIC   = 10  /* the provider failed as a whole [R] */
} VIP_ERROR_CODE;

#define VIP_ERROR_POST_DESC      VIP_ERROR_POST_DESC
#define VIP_ERROR_CONN_LOST      VIP_ERROR_CONN_LOST
#define VIP_ERROR_RECVQ_EMPTY    VIP_ERROR_RECVQ_EMPTY
#define VIP_ERROR_VI_OVERRUN     VIP_ERROR_VI_OVERRUN
#define VIP_ERROR_RDMAW_PROT     VIP_ERROR_RDMAW_PROT
#define VIP_ERROR_RDMAW_DATA     VIP_ERROR_RDMAW_DATA
#define VIP_ERROR_RDMAW_ABORT    VIP_ERROR_RDMAW_ABORT
#define VIP_ERROR_RDMAR_PROT     VIP_ERROR_RDMAR_PROT
#define VIP_ERROR_COMP_PROT      VIP_ERROR_COMP_PROT
#define VIP_ERROR_RDMA_TRANSPORT VIP_ERROR_RDMA_TRANSPORT
#define VIP_ERROR_CATASTROPHIC   VIP_ERROR_CATASTROPHIC

/* Valid during the handler's call only.  Fields that do not apply are NULL or 0 [O]. */
typedef struct _VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE    NicHandle;
    VIP_VI_HANDLE     ViHandle;
    VIP_CQ_HANDLE     CQHandle;
    VIP_DESCRIPTOR   *DescriptorPtr;
    VIP_ULONG         OpCode; /* VIP_STATUS_OP_... of the operation concerned [O] */
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE    ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* VipQuerySystemManagementInfo */

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct _VIP_AUTODISCOVERY_LIST {
    VIP_ULONG         NumberOfHops; /* in: search radius [O] */
    VIP_NET_ADDRESS **ADAddrArray;  /* addresses allocated by the caller; Intel's type, Giganet has one star fewer [V][O] */
    VIP_ULONG         NumAdAddrs;   /* in: capacity of the array; out: addresses found [O] */
} VIP_AUTODISCOVERY_LIST;

/*
 * Handlers run on a thread of the provider, one at a time per NIC handle, never inside the call that installed them.  They may
 * call anything but VipCloseNic of their own NIC and the blocking calls on the same object [O].
 */
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle, VIP_BOOLEAN RecvQueue);
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc);

/* NIC */

/*
 * DeviceName: "shm", and the names `sovia vi` lists; ",strict" may follow.  Opening a device again gives another handle on the
 * same NIC [V].  Tags, regions, VIs and CQs belong to the handle they were made with and combine only with their like [O].
 * VIP_INVALID_PARAMETER: no such device [V].  VIP_ERROR_RESOURCE: too many handles [V].
 */
VIP_RETURN VipOpenNic(IN const VIP_CHAR *DeviceName, OUT VIP_NIC_HANDLE *NicHandle);

/* Disconnects and destroys whatever was made with the handle; so does the end of the process [O]. */
VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);

VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES *NicAttribs);

/* Protection tags and memory */

/* VIP_ERROR_RESOURCE: MaxPtags [V]. */
VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE *ProtectionTag);

/* VIP_ERROR_RESOURCE: a VI or region uses it [R].  VIP_INVALID_PTAG: no such tag [O]. */
VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE ProtectionTag);

/*
 * Registers [VirtualAddress, +Length): any alignment, Length in bytes, overlaps allowed, each with its own handle [R][O].
 * The range stays mapped, with its protection, until VipDeregisterMem: it is copied to and from by the CPU, and what was unmapped
 * or protected meanwhile ends the program by SIGSEGV [O].  It counts as a whole: with one page that may not be written nothing
 * can be received into any of it [O].
 * MemAttribs NULL: NULL tag, no RDMA (strict: VIP_INVALID_PARAMETER) [U][O].
 * VIP_INVALID_PARAMETER: Length 0, or memory that is not mapped.  VIP_ERROR_RESOURCE: a MaxRegister... limit.
 * VIP_INVALID_PTAG, VIP_INVALID_RDMAREAD [R].
 */
VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_ULONG Length,
                          IN VIP_MEM_ATTRIBUTES *MemAttribs, OUT VIP_MEM_HANDLE *MemoryHandle);

/*
 * VirtualAddress: as registered.  Descriptors still queued on the region fail with VIP_STATUS_PROTECTION_ERROR [R]; the memory is
 * not touched after this call has returned [O].
 */
VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_MEM_HANDLE MemoryHandle);

/* Holds for operations processed from now on [O].  VIP_INVALID_PTAG, VIP_INVALID_RDMAREAD [R]. */
VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address, IN VIP_MEM_HANDLE MemHandle,
                               IN VIP_MEM_ATTRIBUTES *MemAttribs);

VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address, IN VIP_MEM_HANDLE MemHandle,
                       OUT VIP_MEM_ATTRIBUTES *MemAttribs);

/* Virtual interfaces */

/*
 * An idle VI.  Either CQ may be NULL, both may be the same [U]; the binding lasts as long as the VI.
 * VIP_INVALID_RELIABILITY_LEVEL: not exactly one supported level.  VIP_INVALID_MTU: 0, or above the NIC's [O].
 * VIP_INVALID_QOS, VIP_INVALID_PTAG, VIP_INVALID_RDMAREAD.  VIP_ERROR_RESOURCE: MaxVI [R].
 */
VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES *ViAttribs, IN VIP_CQ_HANDLE SendCQHandle,
                       IN VIP_CQ_HANDLE RecvCQHandle, OUT VIP_VI_HANDLE *ViHandle);

/*
 * VIP_INVALID_STATE: not idle [R].  VIP_ERROR_RESOURCE: a queue still holds descriptors; completed ones go silently
 * (strict: they too are refused) [R][U][O].  Close as programs do: disconnect, drain both queues, destroy [V].
 */
VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);

/* The booleans are VIP_TRUE when the queue holds no descriptor, completed or not [R]. */
VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE *State, OUT VIP_VI_ATTRIBUTES *ViAttribs,
                      OUT VIP_BOOLEAN *ViSendQEmpty, OUT VIP_BOOLEAN *ViRecvQEmpty);

/* VIP_INVALID_STATE: not idle [R]; otherwise as VipCreateVi. */
VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES *ViAttribs);

/* Connections: client and server */

/*
 * Waits for a request whose RemoteAddr is our LocalAddr [V].  Timeout 0 polls [O].  Lengths preset in RemoteAddr, if plausible,
 * are its capacity; otherwise it is taken to be of full size [O].  VIP_TIMEOUT, VIP_ERROR_RESOURCE.
 */
VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *LocalAddr, IN VIP_ULONG Timeout,
                          OUT VIP_NET_ADDRESS *RemoteAddr, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs,
                          OUT VIP_CONN_HANDLE *ConnHandle);

/*
 * ReliabilityLevel, MaxTransferSize and QoS must equal the client's: VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU,
 * VIP_INVALID_QOS.  The client is not told and the handle stays good, so mend the VI and accept again, or reject [V].
 * VIP_INVALID_STATE: the VI is not idle.  VIP_TIMEOUT: the client has gone [O].
 */
VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);

VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);

/*
 * VIP_NO_MATCH: nobody waits now, whatever the timeout; retry [V][U].  VIP_REJECT.  VIP_TIMEOUT: no answer.
 * VIP_NOT_REACHABLE.  VIP_INVALID_PARAMETER: Timeout 0 [V].  VIP_INVALID_STATE: not idle, or disconnected meanwhile.
 * After a failure the VI is idle and its posted receives are still posted [U].
 */
VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr, IN VIP_NET_ADDRESS *RemoteAddr,
                             IN VIP_ULONG Timeout, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/*
 * Back to idle from any state.  Queued descriptors complete flushed and remain to be dequeued [U][R].  When it returns no
 * handler of VipErrorCallback runs, or will run, for the VI, unless called from one; handlers of VipSendNotify and
 * VipRecvNotify may: VipDestroyVi waits for those [O].
 */
VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);

/* Connections: peer to peer.  Two requests match when each one's LocalAddr is the other's RemoteAddr [R]. */

/* Does not wait [S].  VIP_INVALID_STATE: not idle.  VIP_INVALID_PARAMETER: Timeout 0 [O]. */
VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr, IN VIP_NET_ADDRESS *RemoteAddr,
                                 IN VIP_ULONG Timeout);

/* VIP_NOT_DONE, then success or failure, once: VIP_TIMEOUT, VIP_REJECT, VIP_NO_MATCH, an attribute's code.
 * VIP_INVALID_STATE: no request outstanding [O]. */
VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* The same, waiting as long as the request's own timeout. */
VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/*
 * Data transfer.  From post until dequeued the descriptor and its buffers are the provider's [R].  MemoryHandle: of the region
 * that holds the descriptor.  Success does not mean that the descriptor was good: what is wrong with it comes back in its status,
 * or, when it could not be queued, as VIP_ERROR_POST_DESC [V][O].  VIP_ERROR_RESOURCE: MaxDescriptorsPerQueue [O].
 */
VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr, IN VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr, IN VIP_MEM_HANDLE MemoryHandle);

/*
 * The descriptor at the head of the queue, in posting order [V].  Never blocks.  VIP_SUCCESS: dequeued, complete.
 * VIP_DESCRIPTOR_ERROR: dequeued, with an error status; or NULL, the queue is empty.  VIP_NOT_DONE: still in progress.
 */
VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* The same, blocking while the head is in progress: VIP_TIMEOUT.  VIP_INVALID_PARAMETER: the queue is bound to a CQ [O]. */
VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG TimeOut, OUT VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG TimeOut, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* The same, by a call of Handler; one registration, one descriptor [V].  VIP_INVALID_PARAMETER: no handler, or bound to a CQ. */
VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context, IN VIP_VI_CALLBACK Handler);
VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context, IN VIP_VI_CALLBACK Handler);

/* Completion queues */

/* VIP_INVALID_PARAMETER: EntryCount 0 [O].  VIP_ERROR_RESOURCE: MaxCQ, MaxCQEntries. */
VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount, OUT VIP_CQ_HANDLE *CQHandle);

/* VIP_ERROR_RESOURCE: a VI is bound to it [R].  Unread entries do not matter [U]. */
VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);

/* Entries survive.  VIP_ERROR_RESOURCE: above MaxCQEntries, or fewer than are present [U][O]. */
VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);

/*
 * Takes the oldest entry: which VI, and whether its receive queue (VIP_TRUE) or its send queue.  The descriptor stays queued:
 * follow with VipRecvDone or VipSendDone, which then succeeds at once [S][U].  VIP_NOT_DONE: no entry.
 */
VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE *ViHandle, OUT VIP_BOOLEAN *RecvQueue);

/* The same, blocking: VIP_TIMEOUT. */
VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout, OUT VIP_VI_HANDLE *ViHandle, OUT VIP_BOOLEAN *RecvQueue);

/* The same, by a call of Handler; one registration, one entry [V].  VIP_INVALID_PARAMETER: no handler [V]. */
VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context, IN VIP_CQ_CALLBACK Handler);

/* Errors and management */

/* Handler NULL: the default again, which writes a line to stderr and goes on [V][O]. */
VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context, IN VIP_ERROR_HANDLER Handler);

/*
 * InfoType: VIP_SMI_AUTODISCOVERY, with a VIP_AUTODISCOVERY_LIST: the hosts within NumberOfHops, the NIC's own first, each as an
 * address without a discriminator [O].  VIP_ERROR_RESOURCE: the array is too short, and NumAdAddrs says how many there are [O].
 * VIP_ERROR_NOT_SUPPORTED: the device knows of no others [O].
 */
VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType, OUT VIP_PVOID SysManInfo);

/* Name service */

/* NSInitInfo: NULL, or the path of a text file of "name address" lines [O].  Calling it again succeeds [U]. */
VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);

/*
 * Fills the host part and its length, sets DiscriminatorLen to 0, and touches nothing behind [U][O].  NameIndex, from 0, selects
 * among several addresses.  VIP_ERROR_NAMESERVICE: unknown name, index beyond the last, or no VipNSInit [O].
 */
VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR *Name, OUT VIP_NET_ADDRESS *Address,
                              IN VIP_ULONG NameIndex);

/* NameLen, NUL included: size of the buffer, then length used.  VIP_ERROR_RESOURCE: too small; NameLen is what it takes [O]. */
VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *Address, OUT VIP_CHAR *Name,
                              IN OUT VIP_ULONG *NameLen);

/* Addresses already obtained stay usable [U]. */
VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);

/*
 * Giganet's additions [V].  VipAddTagCQ, VipRemoveTagCQ and VipPostDeferredSends are not provided: programs look them up at run
 * time and do without [U].
 */

typedef VIP_PVOID VIP_EVENT_HANDLE;

/* One pointer per VI for the consumer; NULL at first, and for an invalid handle [O]. */
VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);

/* With an invalid handle nothing happens [O]. */
void VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Data);

#ifdef __cplusplus
}
#endif

/* The layout is the ABI.  LP64 and ILP32 values; there is no record of an LLP64 layout to hold. */

#if defined(__cplusplus) && __cplusplus >= 201103L
#define VIPL_ASSERT_(name, condition) static_assert(condition, #name)
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define VIPL_ASSERT_(name, condition) _Static_assert(condition, #name)
#else
#define VIPL_ASSERT_(name, condition) typedef char vipl_assert_##name[(condition) ? 1 : -1]
#endif

#define VIPL_IS_(value, lp64, ilp32)                                                                                  \
    (sizeof(void *) == sizeof(VIP_ULONG) ? (value) == (sizeof(void *) == 8 ? (size_t)(lp64) : (size_t)(ilp32))        \
                                         : sizeof(void *) == 8)
#define VIPL_SIZE_(type, lp64, ilp32) VIPL_ASSERT_(type##_size, VIPL_IS_(sizeof(type), lp64, ilp32))
#define VIPL_AT_(type, member, lp64, ilp32) VIPL_ASSERT_(type##_##member, VIPL_IS_(offsetof(type, member), lp64, ilp32))

VIPL_SIZE_(VIP_PVOID64, 8, 8);

VIPL_SIZE_(VIP_CONTROL_SEGMENT, 32, 32);
VIPL_AT_(VIP_CONTROL_SEGMENT, Next, 0, 0);
VIPL_AT_(VIP_CONTROL_SEGMENT, NextHandle, 8, 8);
VIPL_AT_(VIP_CONTROL_SEGMENT, SegCount, 12, 12);
VIPL_AT_(VIP_CONTROL_SEGMENT, Control, 14, 14);
VIPL_AT_(VIP_CONTROL_SEGMENT, Reserved, 16, 16);
VIPL_AT_(VIP_CONTROL_SEGMENT, ImmediateData, 20, 20);
VIPL_AT_(VIP_CONTROL_SEGMENT, Length, 24, 24);
VIPL_AT_(VIP_CONTROL_SEGMENT, Status, 28, 28);

VIPL_SIZE_(VIP_ADDRESS_SEGMENT, 16, 16);
VIPL_AT_(VIP_ADDRESS_SEGMENT, Data, 0, 0);
VIPL_AT_(VIP_ADDRESS_SEGMENT, Handle, 8, 8);
VIPL_AT_(VIP_ADDRESS_SEGMENT, Reserved, 12, 12);

VIPL_SIZE_(VIP_DATA_SEGMENT, 16, 16);
VIPL_AT_(VIP_DATA_SEGMENT, Data, 0, 0);
VIPL_AT_(VIP_DATA_SEGMENT, Handle, 8, 8);
VIPL_AT_(VIP_DATA_SEGMENT, Length, 12, 12);

VIPL_SIZE_(VIP_DESCRIPTOR_SEGMENT, 16, 16);
VIPL_AT_(VIP_DESCRIPTOR_SEGMENT, Remote, 0, 0);
VIPL_AT_(VIP_DESCRIPTOR_SEGMENT, Local, 0, 0);

VIPL_SIZE_(VIP_DESCRIPTOR, 64, 64);
VIPL_AT_(VIP_DESCRIPTOR, CS, 0, 0);
VIPL_AT_(VIP_DESCRIPTOR, Control, 0, 0);
VIPL_AT_(VIP_DESCRIPTOR, DS, 32, 32);
VIPL_AT_(VIP_DESCRIPTOR, Data, 32, 32);

VIPL_SIZE_(VIP_NET_ADDRESS, 6, 6);
VIPL_AT_(VIP_NET_ADDRESS, HostAddressLen, 0, 0);
VIPL_AT_(VIP_NET_ADDRESS, DiscriminatorLen, 2, 2);
VIPL_AT_(VIP_NET_ADDRESS, HostAddress, 4, 4);

VIPL_SIZE_(VIP_NIC_ATTRIBUTES, 200, 136);
VIPL_AT_(VIP_NIC_ATTRIBUTES, Name, 0, 0);
VIPL_AT_(VIP_NIC_ATTRIBUTES, HardwareVersion, 64, 64);
VIPL_AT_(VIP_NIC_ATTRIBUTES, ProviderVersion, 72, 68);
VIPL_AT_(VIP_NIC_ATTRIBUTES, NicAddressLen, 80, 72);
VIPL_AT_(VIP_NIC_ATTRIBUTES, LocalNicAddress, 88, 76);
VIPL_AT_(VIP_NIC_ATTRIBUTES, ThreadSafe, 96, 80);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen, 100, 84);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxRegisterBytes, 104, 88);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxRegisterRegions, 112, 92);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxRegisterBlockBytes, 120, 96);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxVI, 128, 100);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxDescriptorsPerQueue, 136, 104);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxSegmentsPerDesc, 144, 108);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxCQ, 152, 112);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxCQEntries, 160, 116);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxTransferSize, 168, 120);
VIPL_AT_(VIP_NIC_ATTRIBUTES, NativeMTU, 176, 124);
VIPL_AT_(VIP_NIC_ATTRIBUTES, MaxPtags, 184, 128);
VIPL_AT_(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport, 192, 132);
VIPL_AT_(VIP_NIC_ATTRIBUTES, RDMAReadSupport, 194, 134);

VIPL_SIZE_(VIP_VI_ATTRIBUTES, 40, 24);
VIPL_AT_(VIP_VI_ATTRIBUTES, ReliabilityLevel, 0, 0);
VIPL_AT_(VIP_VI_ATTRIBUTES, MaxTransferSize, 8, 4);
VIPL_AT_(VIP_VI_ATTRIBUTES, QoS, 16, 8);
VIPL_AT_(VIP_VI_ATTRIBUTES, Ptag, 24, 12);
VIPL_AT_(VIP_VI_ATTRIBUTES, EnableRdmaWrite, 32, 16);
VIPL_AT_(VIP_VI_ATTRIBUTES, EnableRdmaRead, 36, 20);

VIPL_SIZE_(VIP_MEM_ATTRIBUTES, 16, 12);
VIPL_AT_(VIP_MEM_ATTRIBUTES, Ptag, 0, 0);
VIPL_AT_(VIP_MEM_ATTRIBUTES, EnableRdmaWrite, 8, 4);
VIPL_AT_(VIP_MEM_ATTRIBUTES, EnableRdmaRead, 12, 8);

VIPL_SIZE_(VIP_ERROR_DESCRIPTOR, 48, 28);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, NicHandle, 0, 0);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, ViHandle, 8, 4);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, CQHandle, 16, 8);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, DescriptorPtr, 24, 12);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, OpCode, 32, 16);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, ResourceCode, 40, 20);
VIPL_AT_(VIP_ERROR_DESCRIPTOR, ErrorCode, 44, 24);

VIPL_SIZE_(VIP_AUTODISCOVERY_LIST, 24, 12);
VIPL_AT_(VIP_AUTODISCOVERY_LIST, NumberOfHops, 0, 0);
VIPL_AT_(VIP_AUTODISCOVERY_LIST, ADAddrArray, 8, 4);
VIPL_AT_(VIP_AUTODISCOVERY_LIST, NumAdAddrs, 16, 8);

#undef VIPL_AT_
#undef VIPL_SIZE_
#undef VIPL_IS_
#undef VIPL_ASSERT_
#undef VIPL_ANONYMOUS_
#undef VIPL_SEGMENT_QUALIFIER_

#endif
