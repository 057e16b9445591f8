//! Stand-in until the real one is written.
use crate::reason::Reason;
use std::os::fd::BorrowedFd;
use via::window::Windows;
/// See there.
#[derive(Debug)]
pub struct Meeting;
/// See there.
#[derive(Debug)]
pub enum Step {
    /// Not yet.
    Wait,
    /// Met.
    Met(sys::stream::Stream),
    /// Over.
    Over(Reason),
}
impl Meeting {
    /// See there.
    pub fn begin(_: BorrowedFd<'_>, _: &'static dyn Windows) -> Result<Self, Reason> {
        Ok(Self)
    }
    /// See there.
    pub fn step(&mut self, _: BorrowedFd<'_>) -> Step {
        Step::Over(Reason::NobodyCame)
    }
}
