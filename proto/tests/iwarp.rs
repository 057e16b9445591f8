//! iWARP: the numbered statements of its checklist, properties, and what changed octets do.
//!
//! The number in a test's name (`c79_…`) is that of the statement. The octets are those of RFC 5044's
//! figures and of vectors that tshark has decoded as good.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "iwarp/ddp.rs"]
mod ddp;
#[path = "iwarp/end.rs"]
mod end;
#[path = "iwarp/enhanced.rs"]
mod enhanced;
#[path = "iwarp/extensions.rs"]
mod extensions;
#[path = "iwarp/fpdu.rs"]
mod fpdu;
#[path = "iwarp/guess.rs"]
mod guess;
#[path = "iwarp/hostile.rs"]
mod hostile;
#[path = "iwarp/lone.rs"]
mod lone;
#[path = "iwarp/properties.rs"]
mod properties;
#[path = "iwarp/rdmap.rs"]
mod rdmap;
#[path = "iwarp/rig.rs"]
mod rig;
#[path = "iwarp/short.rs"]
mod short;
#[path = "iwarp/startup.rs"]
mod startup;
#[path = "iwarp/strays.rs"]
mod strays;
#[path = "iwarp/tables.rs"]
mod tables;
