//! A VI NIC between processes and threads of one host: M-VIA's loopback device, without a kernel
//! module and without a daemon.
//!
//! - [`DRIVER`] opens it. Processes find each other by abstract Unix sockets of their network
//!   namespace, named by address and discriminator.
//! - A connection is one sealed memfd with a ring for each direction ([`sys::segment`]), and the
//!   Unix socket over which it was made: that is doorbell and sign of life.
//! - Sends are copied into the receiver's ring by the sender's CPU and out of it, into the posted
//!   segments, by the receiver's. RDMA writes go straight to their place where that is safe: into
//!   memory that the NIC allocated ([`via::Memory::shared`]), through a mapping; into other memory,
//!   through `process_vm_writev`, if the kernel lets one process write the other's. Else they take
//!   the ring.
//! - An agent thread for each NIC handle looks after VIs that their owner does not look after. It
//!   sleeps, at no cost, until a doorbell or a death wakes it.
//!
//! Nothing is left of a connection when its processes end, however they end.
//!
//! # Example
//!
//! A server that waits, a client that asks, one message:
//!
//! ```
//! use std::thread;
//! use std::time::Duration;
//!
//! use via::{Access, Descriptor, Error, Memory, Nic, ViConfig};
//!
//! let soon = Some(Duration::from_secs(10));
//! let server = thread::spawn(move || {
//!     let nic = Nic::open(&shm::DRIVER)?;
//!     let tag = nic.create_ptag()?;
//!     let vi = nic.create_vi(&ViConfig::new(&tag))?;
//!     let memory = Memory::private(64).map_err(|_| Error::Resource)?;
//!     let inbox = nic.register(memory, &tag, Access::Local)?;
//!     // Posted before the client can send: a message without a descriptor breaks the connection.
//!     vi.post_recv(&Descriptor::recv().segment(&inbox, 0..64), 1)?;
//!     nic.connect_wait(&nic.address(b"clues")?, soon)?.accept(&vi)?;
//!     let received = vi.recv_wait(soon)?;
//!     let mut clue = vec![0; received.length as usize];
//!     inbox.memory().read(0, &mut clue).map_err(|_| Error::InvalidParameter)?;
//!     Ok::<_, Error>(clue)
//! });
//!
//! let nic = Nic::open(&shm::DRIVER)?;
//! let tag = nic.create_ptag()?;
//! let vi = nic.create_vi(&ViConfig::new(&tag))?;
//! let memory = Memory::private(64).map_err(|_| Error::Resource)?;
//! memory.write(0, b"seven across").map_err(|_| Error::InvalidParameter)?;
//! let outbox = nic.register(memory, &tag, Access::Local)?;
//! while let Err(error) = vi.connect(&nic.address(b"")?, &nic.address(b"clues")?, soon) {
//!     // Nobody waits there yet.
//!     assert_eq!(error, Error::NoMatch);
//!     thread::yield_now();
//! }
//! vi.post_send(&Descriptor::send().segment(&outbox, 0..12), 1)?;
//! vi.send_wait(soon)?;
//! assert_eq!(server.join().expect("no panic")?, b"seven across");
//! # Ok::<(), via::Error>(())
//! ```
#![forbid(unsafe_code)]

mod agent;
mod connect;
mod device;
mod export;
mod grants;
mod landing;
mod lending;
mod link;
mod listen;
mod name;
mod note;
mod peer;
mod peering;
mod window;
mod windows;

pub use self::device::{DRIVER, ShmDriver, device};
