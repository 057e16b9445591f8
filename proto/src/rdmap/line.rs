//! A ULPDU as a line of a capture.

use std::fmt;

use super::body::{AtomicRequest, AtomicResponse, ReadRequest};
use super::opcode::{Carries, Opcode};
use super::terminate::Terminate;
use crate::ddp::{Header, Stag};

/// The octets of a ULPDU, printed as what they mean:
/// `Send qn 0 msn 1 mo 0 last len 5`.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a>(pub &'a [u8]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = match Header::decode(self.0) {
            Ok(header) => header,
            Err(error) => return write!(f, "malformed, {error}: {} octets", self.0.len()),
        };
        let body = self.0.get(header.len()..).unwrap_or_default();
        let opcode = match Opcode::from_control(header.ulp()) {
            Ok(opcode) => opcode,
            Err(error) => return write!(f, "{error} {header} len {}", body.len()),
        };
        write!(f, "{opcode} {header}")?;
        if let Header::Untagged(header) = header
            && opcode.row().invalidates
        {
            write!(f, " inv {}", Stag(header.ulp_word))?;
        }
        match (opcode, opcode.row().carries) {
            (_, Carries::Terminate) => write!(f, " {}", Terminate::decode(body)),
            (Opcode::ReadRequest, _) => {
                body_line(f, body, |octets| Some(ReadRequest::decode(octets)))
            }
            (Opcode::AtomicRequest, _) => body_line(f, body, AtomicRequest::decode),
            (Opcode::AtomicResponse, _) => {
                body_line(f, body, |octets| Some(AtomicResponse::decode(octets)))
            }
            _ => write!(f, " len {}", body.len()),
        }
    }
}

fn body_line<const N: usize, T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    body: &[u8],
    decode: impl Fn(&[u8; N]) -> Option<T>,
) -> fmt::Result {
    let octets = body.first_chunk().filter(|_| body.len() == N);
    match octets.and_then(decode) {
        Some(decoded) => write!(f, " {decoded}"),
        None => write!(f, " malformed, len {}", body.len()),
    }
}
