use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::LocalKey;

use proptest::prelude::*;
use sys::fork::Own;
use sys::sync::AtomicU32;

use super::*;

/// An object that knows who it is.
struct Thing {
    handle: Handle<Self>,
    number: u32,
}

impl Object for Thing {
    const KIND: u8 = 5;

    fn table() -> &'static Table<Self> {
        static THINGS: Own<Table<Thing>> = Own::new();
        THINGS.get()
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn fail(&self) {}
}

impl Remembered for Thing {
    fn recent() -> &'static LocalKey<RecentCell<Self>> {
        thread_local!(static RECENT: RecentCell<Thing> = const { RefCell::new(Recent::new()) });
        &RECENT
    }
}

fn insert(number: u32) -> Handle<Thing> {
    let made = Thing::table().insert(|handle| Arc::new(Thing { handle, number }));
    made.expect("there is room").0
}

/// By the lock, and by what the thread remembers.
fn look(handle: Handle<Thing>) -> [Option<u32>; 2] {
    let remembered = handle.with(|thing| Ok(thing.number)).ok();
    [handle.get().ok().map(|thing| thing.number), remembered]
}

#[derive(Debug, Clone)]
enum Step {
    Insert,
    Remove(prop::sample::Index),
    Look(prop::sample::Index),
    /// With one bit changed.
    LookBeside(prop::sample::Index, u32),
    LookAtRandom(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Insert),
        2 => any::<prop::sample::Index>().prop_map(Step::Remove),
        4 => any::<prop::sample::Index>().prop_map(Step::Look),
        2 => (any::<prop::sample::Index>(), 0..usize::BITS).prop_map(|(at, bit)| Step::LookBeside(at, bit)),
        1 => any::<usize>().prop_map(Step::LookAtRandom),
    ]
}

proptest! {
    /// Every handle there ever was names its object while that lives, and nothing after; no other number names one.
    #[test]
    fn as_a_map_that_never_forgets(steps in prop::collection::vec(step(), 1..300)) {
        let mut ever: Vec<Handle<Thing>> = Vec::new();
        let mut live: HashMap<usize, u32> = HashMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            let number = number as u32;
            let handle = match &step {
                Step::Insert => {
                    let handle = insert(number);
                    prop_assert!(!ever.contains(&handle));
                    ever.push(handle);
                    live.insert(handle.bits, number);
                    handle
                }
                Step::LookAtRandom(bits) => Handle::of_bits(*bits),
                Step::Remove(at) | Step::Look(at) | Step::LookBeside(at, _) if !ever.is_empty() => *at.get(&ever),
                _ => continue,
            };
            let handle = match step {
                Step::Remove(_) => {
                    let removed = handle.remove().map(|thing| thing.number);
                    prop_assert_eq!(removed, live.remove(&handle.bits));
                    handle
                }
                Step::LookBeside(_, bit) => Handle::of_bits(handle.bits ^ 1 << bit),
                _ => handle,
            };
            prop_assert_eq!(look(handle), [live.get(&handle.bits).copied(); 2]);
        }
        for handle in ever {
            prop_assert_eq!(look(handle), [live.get(&handle.bits).copied(); 2]);
            handle.remove();
        }
    }
}

/// Threads make, look at and remove the same things: each lookup finds the thing that the handle was given to, or nothing.
#[test]
fn many_threads_at_once() {
    const SHARED: usize = 32;
    let places = [const { AtomicUsize::new(0) }; SHARED];
    let made = AtomicU32::new(0);
    let removed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (places, made, removed) = (&places, &made, &removed);
            scope.spawn(move || {
                let mut state = thread as u32 + 1;
                for _ in 0..50_000 {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let place = &places[state as usize >> 8 & (SHARED - 1)];
                    if state >> 28 == 0 {
                        made.fetch_add(1, Ordering::Relaxed);
                        let old = place.swap(insert(state).bits, Ordering::AcqRel);
                        let old = Handle::<Thing>::of_bits(old).remove();
                        if old.is_some() {
                            removed.fetch_add(1, Ordering::Relaxed);
                        }
                        continue;
                    }
                    let handle = Handle::<Thing>::of_bits(place.load(Ordering::Acquire));
                    match handle.with(|thing| Ok(thing.handle)) {
                        Ok(named) => assert_eq!(named, handle),
                        Err(error) => assert_eq!(error, Error::InvalidParameter),
                    }
                    if let Ok(thing) = handle.get() {
                        assert_eq!(thing.handle, handle);
                    }
                }
            });
        }
    });
    let left = places.map(|place| Handle::<Thing>::of_bits(place.into_inner()).remove());
    let left = left.into_iter().flatten().count() as u32;
    assert_eq!(made.into_inner(), removed.into_inner() + left);
}

#[test]
fn a_call_within_a_call() {
    let (one, two) = (insert(1), insert(2));
    let seen = one.with(|thing| {
        let inner = two.with(|other| Ok(other.number))?;
        one.with(|same| Ok([thing.number, inner, same.number]))
    });
    assert_eq!(seen, Ok([1, 2, 1]));
    for handle in [one, two] {
        handle.remove();
        assert_eq!(look(handle), [None; 2]);
    }
}

#[test]
fn removing_lets_go() {
    let handle = insert(3);
    assert_eq!(look(handle), [Some(3); 2]);
    let thing = handle.remove().expect("it was there");
    assert_eq!(Arc::strong_count(&thing), 1);
}

#[test]
fn removed_elsewhere_and_forgotten_with_the_next() {
    let (handle, other) = (insert(5), insert(6));
    let things = [handle, other].map(|handle| handle.get().expect("it is there"));
    assert_eq!(look(handle), [Some(5); 2]);
    std::thread::scope(|scope| {
        scope.spawn(|| handle.remove());
    });
    assert_eq!(Arc::strong_count(&things[0]), 2);
    assert_eq!(look(other), [Some(6); 2]);
    assert_eq!(Arc::strong_count(&things[0]), 1);
    other.remove();
    assert_eq!(Arc::strong_count(&things[1]), 1);
}

#[test]
fn removed_in_the_middle_of_a_call() {
    let handle = insert(4);
    let seen = handle.with(|thing| {
        std::thread::scope(|scope| {
            scope.spawn(|| handle.remove());
        });
        Ok(thing.number)
    });
    assert_eq!(seen, Ok(4));
    assert_eq!(look(handle), [None; 2]);
}

/// Whatever its parent's threads were about.
#[test]
fn a_forked_child_has_tables_of_its_own() {
    sys::fork::watch().expect("a handler");
    let handle = insert(7);
    let places = Thing::table().places();
    // SAFETY: the child has its thread's own data, the allocator, which the C library keeps whole, and the table; it ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a number.
        unsafe { libc::alarm(20) };
        let parents = look(handle) == [None; 2];
        let own = insert(8);
        let right = parents && look(own) == [Some(8); 2];
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    drop(places);
    let mut status = 0;
    // SAFETY: an int of ours, and a child that nobody else waits for.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    handle.remove();
}

#[test]
fn places() {
    let mut expected = 0;
    for (chunk, len) in (0..CHUNKS).map(|chunk| (chunk, FIRST_CHUNK << chunk)) {
        for (index, offset) in [(expected, 0), (expected + len - 1, len - 1)] {
            assert_eq!(place_of(index), (chunk, offset));
        }
        expected += len;
    }
    assert!(expected > SLOTS_MAX);
}
