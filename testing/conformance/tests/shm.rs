//! Every statement of the suite on the NIC over shared memory.

use conformance::lab::ShmLab;

macro_rules! on_shm {
    ($($number:literal $group:ident $text:literal $($module:ident::$name:ident)? $(+ $program:literal)?;)*) => {
        $($(
            #[test]
            fn $name() {
                conformance::run($number, ShmLab::new(env!("CARGO_BIN_EXE_conformance-peer")));
            }
        )?)*
    };
}

conformance::statements!(on_shm);
