//! Extended sockets, over the NIC of this host and over iWARP.

mod asking;
mod dual;
mod ends;
mod examples;
mod hostile;
mod kit;
mod notices;
mod posted;
mod seen;
mod stream;
