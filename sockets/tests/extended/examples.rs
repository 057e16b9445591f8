//! The examples do what they say.

use std::env::temp_dir;
use std::fs;

use crate::kit::pattern;

#[expect(dead_code, reason = "its `main` is for the example")]
#[path = "../../examples/file_transfer.rs"]
mod file_transfer;
#[expect(dead_code, reason = "its `main` is for the example")]
#[path = "../../examples/key_value.rs"]
mod key_value;

#[test]
fn a_file_is_copied() {
    for mode in ["vi", "iwarp"] {
        let name =
            |what: &str| temp_dir().join(format!("sovia-{}-{mode}-{what}", std::process::id()));
        let (file, copy) = (name("file"), name("copy"));
        let bytes = pattern(2_000_003, 8);
        fs::write(&file, &bytes).expect("writes");
        let moved = file_transfer::run(mode, &file, &copy).expect("copies");
        let copied = fs::read(&copy).expect("reads");
        for path in [&file, &copy] {
            fs::remove_file(path).expect("removes");
        }
        assert_eq!(moved as usize, bytes.len());
        assert!(copied == bytes);
    }
}

#[test]
fn a_table_is_read_without_its_owner() {
    for mode in ["vi", "iwarp"] {
        assert!(key_value::run(mode).expect("looks up") >= 100);
    }
}
