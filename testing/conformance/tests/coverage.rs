//! Every statement is tested somewhere, or somewhere stands why not.

use std::path::Path;

use conformance::lab::{IwarpLab, ShmLab, SimLab};
use conformance::{Lab, Statement};

#[test]
fn every_statement_is_covered() {
    let labs: [(&str, Box<dyn Lab>); 3] = [
        ("shm", Box::new(ShmLab::new(""))),
        ("sim", Box::new(SimLab::new(0))),
        ("iwarp", Box::new(IwarpLab::new(""))),
    ];
    for (at, statement) in Statement::ALL.iter().enumerate() {
        assert_eq!(usize::from(statement.number), at + 1);
        assert!(
            statement.is_in_suite() || statement.program.is_some(),
            "{statement:?}: tested nowhere"
        );
    }
    for (name, lab) in labs {
        let excused = |statement: &&Statement| lab.excused(statement.number).is_some();
        let in_suite = || {
            Statement::ALL
                .iter()
                .filter(|statement| statement.is_in_suite())
        };
        println!("{name}: {} statements in the suite", in_suite().count());
        for statement in in_suite().filter(excused) {
            let reason = lab.excused(statement.number).expect("it is excused");
            println!("  not {statement:?}: {reason}");
        }
    }
    let in_c = Statement::ALL
        .iter()
        .filter(|statement| statement.program.is_some());
    println!("C: {} statements by programs", in_c.count());
}

/// The C programs that the table names exist and report the statement.
#[test]
fn named_programs_exist() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../abi/vipl/tests/c");
    let mut missing = Vec::new();
    for statement in Statement::ALL {
        let Some(program) = statement.program else {
            continue;
        };
        let source = folder.join(program).with_extension("c");
        let text = std::fs::read_to_string(&source).unwrap_or_default();
        let number = statement.number.to_string();
        let words = |c: char| !c.is_ascii_alphanumeric();
        if !text.split(words).any(|word| word == number) {
            missing.push(format!("{program}.c says nothing of {statement:?}"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
