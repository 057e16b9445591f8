//! System calls that a file makes by instructions of its own, past the C library, and calls whose first argument says what they do.
//!
//! Read off the code, without running it. Instructions are decoded only around the bytes that are looked for: those two bytes of a system call
//! are more often part of a jump.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};

/// The executable parts of a file, with their addresses.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Vec<(u64, &'a [u8])>);

/// The system calls of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RawCalls {
    /// How often each call that concerns us was found.
    pub(super) known: BTreeMap<&'static str, u32>,
    /// Those whose number does not stand beside the instruction.
    pub(super) unknown: u32,
}

impl<'a> Text<'a> {
    /// All system calls by instruction.
    pub(super) fn raw_calls(&self) -> RawCalls {
        let mut calls = RawCalls::default();
        for (_, code) in &self.0 {
            for at in positions(code, SYSCALL) {
                match number(code, at) {
                    Some(Loaded::Constant(number)) => {
                        if let Some((_, name)) = CALLS.iter().find(|(of, _)| *of == number) {
                            *calls.known.entry(name).or_default() += 1;
                        }
                    }
                    Some(Loaded::Elsewhere) => calls.unknown += 1,
                    None => {}
                }
            }
        }
        calls
    }

    /// Whether a function is called with `argument` first whose address is in one of the `slots`.
    pub(super) fn calls_with(&self, slots: &BTreeSet<u64>, argument: u8) -> bool {
        // mov edi, imm32
        let pattern = [0xbf, argument, 0, 0, 0];
        self.is_called_after(slots, &pattern)
    }

    /// As [`Text::calls_with`], for numbers of system calls.
    pub(super) fn calls_by_number(&self, slots: &BTreeSet<u64>, number: u16) -> bool {
        let [low, high] = number.to_le_bytes();
        self.is_called_after(slots, &[0xbf, low, high, 0, 0])
    }

    fn is_called_after(&self, slots: &BTreeSet<u64>, pattern: &[u8]) -> bool {
        !slots.is_empty()
            && self.0.iter().any(|(address, code)| {
                positions(code, pattern).any(|at| {
                    let rest = code.get(at..).unwrap_or_default();
                    let next = decoder(rest, address.wrapping_add(at as u64))
                        .into_iter()
                        .take(ARGUMENTS_REACH)
                        .find(|instruction| instruction.flow_control() != FlowControl::Next);
                    next.is_some_and(|call| self.leads_to(&call, slots))
                })
            })
    }

    /// Whether a call goes through one of the `slots`, at once or by a stub of the procedure linkage table.
    fn leads_to(&self, call: &Instruction, slots: &BTreeSet<u64>) -> bool {
        match call.flow_control() {
            FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                call.is_ip_rel_memory_operand() && slots.contains(&call.ip_rel_memory_address())
            }
            FlowControl::Call | FlowControl::UnconditionalBranch => {
                let target = call.near_branch_target();
                self.at(target).is_some_and(|code| {
                    decoder(code, target)
                        .into_iter()
                        .take(STUB_MAX)
                        .find(|instruction| instruction.flow_control() != FlowControl::Next)
                        .is_some_and(|jump| {
                            jump.flow_control() == FlowControl::IndirectBranch
                                && jump.is_ip_rel_memory_operand()
                                && slots.contains(&jump.ip_rel_memory_address())
                        })
                })
            }
            _ => false,
        }
    }

    fn at(&self, address: u64) -> Option<&'a [u8]> {
        self.0.iter().find_map(|(start, code)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            code.get(at..).filter(|rest| !rest.is_empty())
        })
    }
}

impl RawCalls {
    /// Whether io_uring is set up.
    pub(super) fn sets_up_io_uring(&self) -> bool {
        self.known.contains_key(IO_URING)
    }

    /// Whether a filter is installed.
    pub(super) fn sets_filter(&self) -> bool {
        self.known.contains_key(SECCOMP)
    }

    /// What concerns descriptors, as `read ×2, write`; empty if there is nothing.
    pub(super) fn on_descriptors(&self) -> String {
        let apart = [IO_URING, SECCOMP];
        let named = self
            .known
            .iter()
            .filter(|(name, _)| !apart.contains(name))
            .map(|(name, &times)| match times {
                1 => (*name).to_owned(),
                _ => format!("{name} ×{times}"),
            });
        named.collect::<Vec<_>>().join(", ")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loaded {
    Constant(u64),
    Elsewhere,
}

/// With which number the system call at `at` is made; `None` if it is no instruction of its own.
fn number(code: &[u8], at: usize) -> Option<Loaded> {
    let start = at.saturating_sub(REACH);
    let before = code.get(start..at + SYSCALL.len())?;
    let mut loaded = Loaded::Elsewhere;
    for instruction in &mut decoder(before, start as u64) {
        if instruction.code() == Code::Syscall {
            if instruction.ip() == at as u64 {
                return Some(loaded);
            }
            loaded = Loaded::Elsewhere;
        } else if instruction.op0_register().full_register() == Register::RAX {
            loaded = match instruction.code() {
                Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 | Code::Mov_rm64_imm32 => {
                    Loaded::Constant(instruction.immediate(1))
                }
                Code::Xor_r32_rm32 | Code::Xor_rm32_r32
                    if instruction.op1_register() == instruction.op0_register() =>
                {
                    Loaded::Constant(0)
                }
                Code::Cmp_rm64_imm32 | Code::Cmp_RAX_imm32 | Code::Test_rm64_r64 => loaded,
                _ => Loaded::Elsewhere,
            };
        }
    }
    None
}

fn decoder(code: &[u8], address: u64) -> Decoder<'_> {
    Decoder::with_ip(64, code, address, DecoderOptions::NONE)
}

fn positions<'a>(code: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    code.windows(pattern.len())
        .enumerate()
        .filter(move |(_, window)| *window == pattern)
        .map(|(at, _)| at)
}

const SYSCALL: &[u8] = &[0x0f, 0x05];
const IO_URING: &str = "io_uring_setup";
const SECCOMP: &str = "seccomp";

/// What moves bytes, waits, or changes what descriptors are. Numbers of x86-64.
const CALLS: [(u64, &str); 37] = [
    (0, "read"),
    (1, "write"),
    (3, "close"),
    (7, "poll"),
    (19, "readv"),
    (20, "writev"),
    (23, "select"),
    (32, "dup"),
    (33, "dup2"),
    (40, "sendfile"),
    (42, "connect"),
    (43, "accept"),
    (44, "sendto"),
    (45, "recvfrom"),
    (46, "sendmsg"),
    (47, "recvmsg"),
    (48, "shutdown"),
    (57, "fork"),
    (58, "vfork"),
    (59, "execve"),
    (72, "fcntl"),
    (232, "epoll_wait"),
    (233, "epoll_ctl"),
    (270, "pselect6"),
    (271, "ppoll"),
    (275, "splice"),
    (281, "epoll_pwait"),
    (288, "accept4"),
    (292, "dup3"),
    (299, "recvmmsg"),
    (307, "sendmmsg"),
    (317, SECCOMP),
    (322, "execveat"),
    (425, IO_URING),
    (426, "io_uring_enter"),
    (436, "close_range"),
    (441, "epoll_pwait2"),
];

/// Decoding that begins in the middle of an instruction is in step again long before this many bytes.
const REACH: usize = 96;
/// Instructions from the first argument to the call.
const ARGUMENTS_REACH: usize = 12;
/// Instructions of a stub: `endbr64`, `bnd jmp`.
const STUB_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scanned(code: &[u8]) -> RawCalls {
        Text(vec![(0x1000, code)]).raw_calls()
    }

    #[test]
    fn numbers_beside_the_instruction_are_read() {
        let write = [0xb8, 1, 0, 0, 0, 0x48, 0x89, 0xd6, 0x0f, 0x05];
        assert_eq!(scanned(&write).on_descriptors(), "write");
        let read = [0x31, 0xc0, 0x0f, 0x05, 0x31, 0xc0, 0x0f, 0x05];
        assert_eq!(scanned(&read).on_descriptors(), "read ×2");
        let ring = [0xb8, 0xa9, 1, 0, 0, 0x0f, 0x05];
        assert!(scanned(&ring).sets_up_io_uring());
        assert_eq!(scanned(&ring).on_descriptors(), "");
        // futex concerns nobody.
        let futex = [0xb8, 202, 0, 0, 0, 0x0f, 0x05];
        assert_eq!(scanned(&futex), RawCalls::default());
    }

    #[test]
    fn a_wrapper_is_told_from_part_of_a_jump() {
        let wrapper = [0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x0f, 0x05, 0xc3];
        assert_eq!(scanned(&wrapper).unknown, 1);
        let jump = [0x90, 0x31, 0xc0, 0xe8, 0x10, 0x0f, 0x05, 0x00, 0xc3];
        assert_eq!(scanned(&jump), RawCalls::default());
    }

    #[test]
    fn calls_are_followed_through_their_stub() {
        // mov edi, 22; call +3; ret; nop; nop; then the stub: jmp [rip+0x100].
        let code = [
            0xbf, 22, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0xc3, 0x90, 0x90, 0xff, 0x25, 0, 1, 0, 0,
        ];
        let text = Text(vec![(0x1000, &code)]);
        let slot = 0x1000 + code.len() as u64 + 0x100;
        assert!(text.calls_with(&BTreeSet::from([slot]), 22));
        assert!(!text.calls_with(&BTreeSet::from([slot]), 23));
        assert!(!text.calls_with(&BTreeSet::from([slot + 8]), 22));
    }

    proptest! {
        #[test]
        fn any_bytes_are_scanned(code in proptest::collection::vec(any::<u8>(), 0..4096)) {
            scanned(&code);
            Text(vec![(u64::MAX - 7, &code)]).calls_with(&BTreeSet::from([0]), 1);
        }
    }
}
