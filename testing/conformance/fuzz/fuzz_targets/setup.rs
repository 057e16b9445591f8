#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::fuzz_setup(bytes));
