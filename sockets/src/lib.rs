//! Byte streams over Virtual Interfaces: the sockets layer under unmodified programs.
#![forbid(unsafe_code)]
