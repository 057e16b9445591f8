//! The kernel's error numbers, as `rustix` has them.

pub use rustix::io::Errno;
