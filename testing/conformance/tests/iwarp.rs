//! Every statement of the suite on the NIC over TCP.

use conformance::lab::IwarpLab;

macro_rules! on_iwarp {
    ($($number:literal $group:ident $text:literal $($module:ident::$name:ident)? $(+ $program:literal)?;)*) => {
        $($(
            #[test]
            fn $name() {
                conformance::run($number, IwarpLab::new(env!("CARGO_BIN_EXE_conformance-peer")));
            }
        )?)*
    };
}

conformance::statements!(on_iwarp);
