//! The C programs of the folder `programs/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::table::{self, Particular};

/// One program: a file `programs/FAMILY/NAME.c`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// `FAMILY/NAME`.
    pub path: String,
}

impl Program {
    /// All programs, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut programs = Vec::new();
        for family in fs::read_dir(folder())? {
            let family = family?.path();
            if !family.is_dir() {
                continue;
            }
            for file in fs::read_dir(&family)? {
                let file = file?.path();
                if file.extension().is_some_and(|extension| extension == "c") {
                    let name = |path: &Path| {
                        path.file_stem()
                            .map(|stem| stem.to_string_lossy().into_owned())
                            .unwrap_or_default()
                    };
                    programs.push(Self {
                        path: format!("{}/{}", name(&family), name(&file)),
                    });
                }
            }
        }
        programs.sort();
        Ok(programs)
    }

    /// The C source.
    pub fn source(&self) -> PathBuf {
        folder().join(format!("{}.c", self.path))
    }

    /// What the table says of it; `None` for a program with one connection that is upgraded.
    pub fn particular(&self) -> Option<&'static Particular> {
        table::PARTICULARS
            .iter()
            .find(|row| row.program == self.path)
    }
}

/// Where the programs and their headers are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}
