//! The fuzz targets without a fuzzer: their corpora, and random changes to them.
//!
//! `SOVIA_WRITE_CORPUS=1` writes the seeds into the corpora.

use std::fs;
use std::path::PathBuf;

use conformance::fuzz::Target;
use conformance::{is_long, watch};

fn corpus(target: Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name);
    if std::env::var_os("SOVIA_WRITE_CORPUS").is_some() {
        fs::create_dir_all(&folder).expect("a folder");
        for (name, bytes) in target.seeds() {
            fs::write(folder.join(name), bytes).expect("a file");
        }
    }
    let files = fs::read_dir(&folder).expect("a corpus");
    let mut files: Vec<_> = files
        .map(|file| {
            let path = file.expect("a file").path();
            let bytes = fs::read(&path).expect("a readable file");
            (path, bytes)
        })
        .collect();
    files.sort();
    files
}

fn replay(target: Target) {
    let files = corpus(target);
    assert!(files.len() >= target.seeds().len(), "seeds are missing");
    for (path, bytes) in files {
        println!("{}", path.display());
        (target.run)(&bytes);
    }
}

/// What failed is the last line: its number, which with the corpus gives the bytes.
fn change(target: Target) {
    let files: Vec<_> = corpus(target).into_iter().map(|(_, bytes)| bytes).collect();
    let seconds = if is_long() { 60 } else { 2 };
    let mut random = Random(0x5eed);
    for round in 0..target.a_second * seconds {
        let mut bytes = files[random.below(files.len())].clone();
        for _ in 0..=random.below(4) {
            let other = &files[random.below(files.len())];
            random.change(&mut bytes, other);
        }
        let _told = Told(round, &bytes);
        (target.run)(&bytes);
    }
}

/// Says what it was if that panics.
struct Told<'a>(u32, &'a [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("round {}: {:02x?}", self.0, self.1);
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        match self.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.next() as u8,
            2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => bytes.insert(at, self.next() as u8),
            4 => bytes.truncate(at),
            // One after the other, or one into the other.
            _ if bytes.len() < 4096 => {
                let from = self.below(other.len() + 1);
                bytes.splice(at..at, other[from..].iter().copied());
            }
            _ => {}
        }
    }
}

macro_rules! targets {
    ($($index:literal $replay:ident $change:ident;)*) => {
        $(
            #[test]
            fn $replay() {
                watch(|| replay(Target::ALL[$index]));
            }

            #[test]
            fn $change() {
                watch(|| change(Target::ALL[$index]));
            }
        )*
    };
}

targets! {
    0 frame_corpus frame_changes;
    1 setup_corpus setup_changes;
    2 link_corpus link_changes;
    3 mpa_corpus mpa_changes;
    4 ddp_corpus ddp_changes;
    5 rdmap_corpus rdmap_changes;
    6 extended_corpus extended_changes;
    7 extended_socket_corpus extended_socket_changes;
    8 rdmap_ahead_corpus rdmap_ahead_changes;
}
