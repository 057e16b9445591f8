use std::{fs::File, mem::offset_of, ptr, thread};

use proptest::prelude::*;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
};

use super::*;
use crate::sync::Ordering;

#[test]
fn fresh_memory_is_zero_and_keeps_what_is_written() {
    for memory in [Memory::private(5000), Memory::shared(5000)] {
        let memory = memory.expect("memory");
        assert_eq!((memory.len(), memory.writable()), (5000, true));
        assert_eq!(bytes(&memory), vec![0; 5000]);
        memory.write(4990, b"0123456789").expect("inside");
        assert_eq!(&bytes(&memory)[4990..], b"0123456789");
    }
}

#[test]
fn a_few_bytes_are_copied_and_no_others() {
    for (len, shift) in (0..40).flat_map(|len| (0..9).map(move |shift| (len, shift))) {
        let memory = Memory::private(64).expect("memory");
        let mut expected: Vec<u8> = (0..64).collect();
        memory.write(0, &expected).expect("inside");
        Memory::copy(&memory, 8 + shift, &memory, 8, len, Store::Plain).expect("inside");
        expected.copy_within(8..8 + len, 8 + shift);
        assert_eq!(bytes(&memory), expected, "{len} bytes, {shift} further");
        Memory::copy(&memory, 8, &memory, 8 + shift, len, Store::Plain).expect("inside");
        expected.copy_within(8 + shift..8 + shift + len, 8);
        assert_eq!(bytes(&memory), expected, "{len} bytes, {shift} back");
    }
}

#[test]
fn what_is_close_but_for_its_page_is_copied_whole() {
    for (len, after) in [2047, 2048, 2111, 4000]
        .into_iter()
        .flat_map(|len| (0..17).map(move |after| (len, after)))
    {
        let memory = Memory::private(3 * 4096).expect("memory");
        let mut expected: Vec<u8> = (0..3 * 4096).map(|at| (at % 251) as u8).collect();
        memory.write(0, &expected).expect("inside");
        let to = 4096 + 5 + after;
        Memory::copy(&memory, to, &memory, 5, len, Store::Own).expect("inside");
        expected.copy_within(5..5 + len, to);
        assert_eq!(bytes(&memory), expected, "{len} {after}");
    }
}

#[test]
fn an_access_outside_is_refused() {
    let memory = Memory::private(100).expect("memory");
    assert_eq!(memory.write(0, &[0; 101]), Err(OutOfRange));
    assert_eq!(memory.write(100, &[0]), Err(OutOfRange));
    assert_eq!(memory.write(100, &[]), Ok(()));
    assert_eq!(memory.write(101, &[]), Err(OutOfRange));
    assert_eq!(memory.read(usize::MAX, &mut [0; 2]), Err(OutOfRange));
    assert_eq!(
        Memory::copy(&memory, 0, &memory, 1, usize::MAX, Store::Plain),
        Err(OutOfRange)
    );
    assert_eq!(
        Memory::copy(&memory, 1, &memory, 0, 100, Store::Streaming),
        Err(OutOfRange)
    );
    assert_eq!(memory.load_u32(97, Ordering::Relaxed), Err(OutOfRange));
    assert_eq!(memory.load_u32(96, Ordering::Relaxed), Ok(0));
    assert_eq!(
        memory.load_u32(2, Ordering::Relaxed),
        Err(OutOfRange),
        "misaligned"
    );
    assert_eq!(
        memory.store_u64(4, 0, Ordering::Relaxed),
        Err(OutOfRange),
        "misaligned"
    );
}

#[test]
fn a_length_of_zero_or_beyond_the_address_space_is_refused() {
    for len in [0, usize::MAX, usize::MAX / 2] {
        assert_eq!(
            Memory::private(len).expect_err("refused").kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(
            Memory::shared(len).expect_err("refused").kind(),
            ErrorKind::InvalidInput
        );
    }
}

#[test]
fn words_are_where_bytes_are() {
    let memory = Memory::shared(64).expect("memory");
    memory
        .store_u32(4, 0x0102_0304, Ordering::Release)
        .expect("aligned");
    memory.store_u64(8, 5, Ordering::Release).expect("aligned");
    assert_eq!(&bytes(&memory)[4..8], 0x0102_0304_u32.to_ne_bytes());
    assert_eq!(memory.load_u32(4, Ordering::Acquire), Ok(0x0102_0304));
    assert_eq!(memory.load_u64(8, Ordering::Acquire), Ok(5));
}

#[test]
fn an_importer_sees_the_same_bytes() {
    let memory = Memory::shared(3 << 20).expect("memory");
    let imported = Memory::import(memory.try_clone_fd().expect("shared"), 3 << 20).expect("sealed");
    memory.write(12345, b"here").expect("inside");
    assert_eq!(&bytes(&imported)[12345..12349], b"here");
    assert_ne!(memory.addr(), imported.addr());
}

#[test]
fn what_a_peer_could_pull_away_is_not_imported() {
    let kind = |fd: OwnedFd, len| Memory::import(fd, len).expect_err("refused").kind();

    let file = File::open("/proc/self/exe").expect("a file");
    assert_eq!(kind(file.into(), 1), ErrorKind::InvalidData);

    for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW] {
        let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd");
        ftruncate(&fd, 8192).expect("resizable");
        fcntl_add_seals(&fd, seals).expect("sealable");
        assert_eq!(kind(fd, 4096), ErrorKind::InvalidData);
    }

    let small = Memory::shared(4096)
        .expect("memory")
        .try_clone_fd()
        .expect("shared");
    assert_eq!(kind(small, 4097), ErrorKind::InvalidData);
}

#[test]
fn our_own_memory_cannot_be_resized() {
    let fd = Memory::shared(4096)
        .expect("memory")
        .try_clone_fd()
        .expect("shared");
    assert!(ftruncate(&fd, 0).is_err());
    assert!(ftruncate(&fd, 8192).is_err());
    let sealed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    assert!(fcntl_get_seals(&fd).expect("a memfd").contains(sealed));
}

#[test]
fn borrowed_memory_is_the_callers() {
    let mut buffer = vec![1_u8; 10_000];
    let addr = buffer.as_mut_ptr().expose_provenance();
    // SAFETY: `buffer` outlives the value, and is looked at only between its accesses.
    let memory = unsafe { Memory::borrowed(addr, 10_000) }.expect("mapped");
    assert!(memory.writable());
    memory.write(9_999, &[7]).expect("inside");
    drop(memory);
    assert_eq!(buffer[9_999], 7);
}

#[test]
fn borrowed_memory_must_be_there() {
    let page = page_size();
    // SAFETY: a new mapping.
    let start = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            4 * page,
            ProtFlags::READ,
            MapFlags::PRIVATE,
        )
    }
    .expect("pages");
    // SAFETY: the last two pages are this test's own.
    unsafe { munmap(start.wrapping_byte_add(2 * page), 2 * page) }.expect("mapped");
    let addr = start.expose_provenance();
    // SAFETY: what is mapped stays so.
    let borrow = |addr, len| unsafe { Memory::borrowed(addr, len) };

    let memory = borrow(addr + 10, 2 * page - 10).expect("mapped");
    assert!(!memory.writable());
    assert_eq!(memory.read(0, &mut [1]), Ok(()));
    assert_eq!(memory.write(0, &[1]), Err(OutOfRange));
    assert_eq!(memory.store_u64(6, 1, Ordering::Relaxed), Err(OutOfRange));

    for (addr, len) in [
        (addr + page, page + 1),
        (0, 1),
        (addr, 0),
        (usize::MAX, 1),
        (usize::MAX - 10, 100),
    ] {
        assert_eq!(
            borrow(addr, len).expect_err("refused").kind(),
            ErrorKind::InvalidInput
        );
    }
}

/// As kernels before 5.14 answer.
#[test]
fn memory_is_borrowed_where_the_kernel_does_not_populate() {
    let page = page_size();
    let map = |protection| {
        // SAFETY: a new mapping.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), 3 * page, protection, MapFlags::PRIVATE) };
        start.expect("pages").expose_provenance()
    };
    let both = ProtFlags::READ | ProtFlags::WRITE;
    let [fresh, fixed, hidden, gone] = [both, ProtFlags::READ, ProtFlags::empty(), both].map(map);
    // SAFETY: the page is this test's own.
    unsafe { munmap(ptr::with_exposed_provenance_mut(gone + page), page) }.expect("mapped");
    let mut word = [-5_i32; 2048];
    let used = word.as_mut_ptr().expose_provenance();

    let borrow = move || {
        [fresh, fixed, used, hidden, gone].map(|addr| {
            // SAFETY: what is mapped stays so, and nobody looks at it meanwhile.
            let memory = unsafe { Memory::borrowed(addr, 2 * page) };
            memory
                .map(|memory| memory.writable())
                .map_err(|error| error.kind())
        })
    };
    let refused = Err(ErrorKind::InvalidInput);
    let expected = [Ok(true), Ok(false), Ok(true), refused, refused];
    let without = thread::spawn(move || {
        forget_populating();
        borrow()
    });
    assert_eq!(without.join().expect("no panic"), expected);
    assert_eq!(borrow(), expected);
    assert_eq!(word, [-5; 2048]);
}

/// This thread's kernel does not know the advice any more.
fn forget_populating() {
    let step = |code: u32, yes, no, value: usize| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k: value as u32,
    };
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let jump = libc::BPF_JMP | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let invalid = libc::SECCOMP_RET_ERRNO as usize | libc::EINVAL as usize;
    let mut steps = [
        load(offset_of!(libc::seccomp_data, nr)),
        step(jump | libc::BPF_JEQ, 0, 3, libc::SYS_madvise as usize),
        load(offset_of!(libc::seccomp_data, args) + 2 * size_of::<u64>()),
        step(
            jump | libc::BPF_JGE,
            0,
            1,
            libc::MADV_POPULATE_READ as usize,
        ),
        step(answer, 0, 0, invalid),
        step(answer, 0, 0, libc::SECCOMP_RET_ALLOW as usize),
    ];
    let filter = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: it concerns this thread alone, and takes no pointer.
    let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(given_up, 0);
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: `filter` and its steps outlive the call, which copies them.
    let set = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const filter) };
    assert_eq!(set, 0);
}

#[test]
fn the_unshared_keep_their_bytes_and_their_address() {
    let memory = Memory::shared(1 << 20).expect("memory");
    let old = Memory::import(memory.try_clone_fd().expect("shared"), 1 << 20).expect("sealed");
    memory.write(500_000, b"mine").expect("inside");
    memory.write((1 << 20) - 4, b"last").expect("inside");
    let (addr, before) = (memory.addr(), bytes(&memory));

    memory.unshare().expect("shared");
    assert_eq!(memory.addr(), addr);
    assert_eq!(bytes(&memory), before);
    old.write(500_000, b"evil").expect("inside");
    assert_eq!(bytes(&memory), before);

    let new = Memory::import(memory.try_clone_fd().expect("shared"), 1 << 20).expect("sealed");
    memory.write(0, b"new").expect("inside");
    assert_eq!(&bytes(&new)[..3], b"new");
    assert_eq!(
        Memory::private(1)
            .expect("memory")
            .unshare()
            .expect_err("private")
            .kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn without_a_descriptor_the_pages_are_unshared_all_the_same() {
    let len = (5 << 20) + 4096;
    let memory = Memory::shared(len).expect("memory");
    let old = Memory::import(memory.try_clone_fd().expect("shared"), len).expect("sealed");
    memory.write(500_000, b"mine").expect("inside");
    memory.write(len - 4, b"last").expect("inside");
    let (addr, before) = (memory.addr(), bytes(&memory));

    // What the file would be made by is refused beyond the limit on files. Each test has a process of its own.
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: None,
    };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, none).expect("lower");
    memory.unshare().expect("memory without a file");
    assert_eq!(memory.addr(), addr);
    assert_eq!(bytes(&memory), before);
    old.write(500_000, b"evil").expect("inside");
    assert_eq!(bytes(&memory), before);
    memory.write(0, b"new").expect("inside");

    let refused = memory.lend(1).expect_err("nothing to lend");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    memory.unshare().expect("already so");
}

#[test]
fn one_lends_a_memory_until_it_is_unshared() {
    let memory = Memory::shared(4096).expect("memory");
    memory.lend(1).expect("nobody's");
    memory.lend(1).expect("its own");
    let refused = memory.lend(2).expect_err("another's");
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    memory.unshare().expect("shared");
    memory.lend(2).expect("nobody's again");
    let private = Memory::private(1).expect("memory");
    let refused = private.lend(1).expect_err("private");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

proptest! {
    #[test]
    fn a_copy_is_a_memmove(to in 0..5000_usize, from in 0..5000_usize, len in 0..5000_usize, streaming: bool) {
        let memory = Memory::private(10_000).expect("memory");
        let mut model: Vec<u8> = (0..10_000_u32).map(|i| (i * 31 % 251) as u8).collect();
        memory.write(0, &model).expect("inside");
        model.copy_within(from..from + len, to);
        let store = if streaming { Store::Streaming } else { Store::Plain };
        Memory::copy(&memory, to, &memory, from, len, store).expect("inside");
        prop_assert_eq!(bytes(&memory), model);
    }
}

fn bytes(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0xff; memory.len()];
    memory.read(0, &mut bytes).expect("all of it");
    bytes
}
