//! A VI NIC over kernel TCP whose wire is iWARP: MPA, DDP and RDMAP, as Linux siw and the adapters speak it.
//!
//! - [`DRIVER`] opens it. A VIPL address is an IPv4 address and a port ([`host`]); the discriminator
//!   and the VI's attributes travel in MPA's private data. A peer that has none of this is accepted too.
//! - [`over()`] makes a VI of a TCP connection that is there already, in place.
//! - A connection is a [`proto::rdmap::Engine`] over a non-blocking socket. What is sent goes from the
//!   user's memory to the kernel, and what comes from there to its place, without a copy here but for
//!   short messages, markers, and what a peer writes under a checksum.
//! - Whoever calls moves the octets, and waits by polling a little before it sleeps. An agent thread for
//!   each NIC handle answers peers whose request finds nobody calling: it sleeps until a socket wakes it.
//!
//! | VIPL | on the wire |
//! |---|---|
//! | send | Send |
//! | send with immediate data | Send with Invalidate; the word is the immediate data. Between sovia ends only |
//! | RDMA write | RDMA Write |
//! | RDMA write with immediate data | RDMA Write, and Immediate Data (RFC 7306): length, word |
//! | RDMA read | RDMA Read; one for each descriptor, of any length |
//! | reliable reception | each message is followed by an RDMA Read of no octets: its answer says that the message is in place |
//! | unreliable delivery | as reliable delivery, but what does not fit is dropped at its receiver |
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
//! let config = iwarp::Config {
//!     address: "127.0.0.1:0".parse().expect("an address"),
//!     ..iwarp::Config::default()
//! };
//! let driver = iwarp::IwarpDriver::new(config).map_err(|_| Error::Resource)?;
//! let soon = Some(Duration::from_secs(10));
//! thread::scope(|scope| {
//!     let server = scope.spawn(|| {
//!         let nic = Nic::open(&driver)?;
//!         let tag = nic.create_ptag()?;
//!         let vi = nic.create_vi(&ViConfig::new(&tag))?;
//!         let memory = Memory::private(64).map_err(|_| Error::Resource)?;
//!         let inbox = nic.register(memory, &tag, Access::Local)?;
//!         vi.post_recv(&Descriptor::recv().segment(&inbox, 0..64), 1)?;
//!         nic.connect_wait(&nic.address(b"clues")?, soon)?.accept(&vi)?;
//!         let received = vi.recv_wait(soon)?;
//!         let mut clue = vec![0; received.length as usize];
//!         inbox.memory().read(0, &mut clue).map_err(|_| Error::InvalidParameter)?;
//!         Ok::<_, Error>(clue)
//!     });
//!     let nic = Nic::open(&driver)?;
//!     let tag = nic.create_ptag()?;
//!     let vi = nic.create_vi(&ViConfig::new(&tag))?;
//!     let memory = Memory::private(64).map_err(|_| Error::Resource)?;
//!     memory.write(0, b"seven across").map_err(|_| Error::InvalidParameter)?;
//!     let outbox = nic.register(memory, &tag, Access::Local)?;
//!     while let Err(error) = vi.connect(&nic.address(b"")?, &nic.address(b"clues")?, soon) {
//!         // Nobody waits there yet.
//!         assert_eq!(error, Error::NoMatch);
//!         thread::sleep(Duration::from_millis(10));
//!     }
//!     vi.post_send(&Descriptor::send().segment(&outbox, 0..12), 1)?;
//!     vi.send_wait(soon)?;
//!     assert_eq!(server.join().expect("no panic")?, b"seven across");
//!     Ok(())
//! })
//! # .map_err(|error: Error| error)
//! # .expect("a message");
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod departure;
mod departures;
mod device;
mod dial;
mod door;
mod driver;
mod link;
mod over;
mod pace;
mod peering;
mod private;
mod runs;
mod stream;
mod wire;

pub use self::address::{host, socket_address};
pub use self::departure::is_seeing_off;
pub use self::driver::{Config, DRIVER, IwarpDriver, PORT, VARIABLE};
pub use self::over::over;
pub use proto::mpa::Role;
