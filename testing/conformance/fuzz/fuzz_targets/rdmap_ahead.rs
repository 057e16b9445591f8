//! `conformance::fuzz::fuzz_rdmap_ahead` for a fuzzer.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::fuzz_rdmap_ahead(bytes));
