use proptest::prelude::*;

use super::layout::{GROUPS, LeafPages, SLOTS};
use super::*;

/// A leaf of its own: the process has one board, and tests run side by side.
fn leaf() -> Leaf {
    let mapping = Mapping::anonymous(size_of::<LeafPages>()).expect("memory");
    let mapping = std::mem::ManuallyDrop::new(mapping);
    let id = Id(NonZeroU64::MIN);
    // SAFETY: zeroed pages of its size, which are never unmapped.
    Leaf::new(id, 3, unsafe { &*mapping.start().cast() })
}

fn note(leaf: &Leaf, slot: u32) -> bool {
    leaf.note(slot)
}

fn taken(leaf: &Leaf) -> Vec<u32> {
    let mut taken = Vec::new();
    for group in 0..GROUPS as u32 {
        leaf.take(group, |slot| taken.push(slot));
    }
    taken
}

#[test]
fn a_place_is_its_number_and_no_number_is_outside() {
    let leaf = leaf();
    for slot in [0, 1, SLOTS as u32 - 1] {
        let place = leaf.place(slot).expect("there is room");
        assert_eq!(Place::from_number(place.number()), place);
        assert_eq!((place.leaf(), place.slot()), (3, slot));
        assert!(place.number() < 1 << Place::BITS);
    }
    assert_eq!(leaf.place(SLOTS as u32), None);
    for number in [u32::MAX, 1 << Place::BITS, 0x8765_4321] {
        let place = Place::from_number(number);
        assert!(place.leaf() < layout::LEAVES && place.slot() < SLOTS as u32);
    }
}

#[test]
fn who_sleeps_is_rung_for() {
    let leaf = leaf();
    assert!(leaf.is_quiet(SLOTS) && !note(&leaf, 70));
    assert!(!leaf.is_quiet(SLOTS) && !leaf.is_quiet(71));
    assert_eq!(taken(&leaf), [70]);
    leaf.sleep();
    assert!(leaf.is_quiet(SLOTS) && note(&leaf, 70));
    leaf.wake();
    assert!(!note(&leaf, 71));
    leaf.leave();
    leaf.wake();
    assert!(note(&leaf, 72), "nobody looks any more");
}

#[test]
fn a_board_is_mapped_once_and_told_from_other_memory() {
    assert!(make() && make());
    let lent = || {
        let lent = lend(|_, fd| fd.try_clone_to_owned().expect("a descriptor"));
        Hidden::adopt(lent.expect("it was made"))
    };
    let one = admit(&lent()).expect("a board");
    let other = admit(&lent()).expect("the same");
    assert!(one.is_of_same(&other));
    let leaf = claim().expect("a leaf");
    assert_eq!(lend(|id, _| id), Some(leaf.board()));
    assert!(!one.note(leaf.place(5).expect("a place")));
    assert!(!other.note(leaf.place(40).expect("a place")));
    assert_eq!(taken(&leaf), [5, 40]);
    give_back(leaf);

    let shorter = memfd::create_as("sovia-board", LEN / 2).expect("a memfd");
    assert!(admit(&Hidden::adopt(shorter)).is_none());
    let file = std::fs::File::open("/dev/null").expect("there");
    assert!(admit(&Hidden::adopt(file.into())).is_none());
}

proptest! {
    /// What is noted is taken, once.
    #[test]
    fn a_leaf_is_a_set_of_slots(steps in prop::collection::vec(prop::option::weighted(0.9, 0..SLOTS as u32), 0..200)) {
        let leaf = leaf();
        let mut expected = std::collections::BTreeSet::new();
        for step in steps {
            match step {
                Some(slot) => {
                    note(&leaf, slot);
                    expected.insert(slot);
                }
                None => prop_assert!(taken(&leaf).into_iter().eq(std::mem::take(&mut expected))),
            }
        }
        let last = expected.last().map_or(0, |slot| slot + 1);
        prop_assert_eq!(leaf.is_quiet(last as usize), expected.is_empty());
        prop_assert!(taken(&leaf).into_iter().eq(expected));
    }
}
