//! Every statement of the suite on the NIC in virtual time.

use conformance::lab::SimLab;

macro_rules! on_sim {
    ($($number:literal $group:ident $text:literal $($module:ident::$name:ident)? $(+ $program:literal)?;)*) => {
        $($(
            #[test]
            fn $name() {
                conformance::run($number, SimLab::new($number));
            }
        )?)*
    };
}

conformance::statements!(on_sim);
