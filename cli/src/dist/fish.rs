//! What fish completes after `sovia run`, `check` and `explain`: clap's script offers the options there, and files.

/// The script with `programs.fish` behind it.
pub(super) fn with_programs(script: &str) -> String {
    format!("{script}{PROGRAMS}")
}

const PROGRAMS: &str = include_str!("programs.fish");

#[cfg(test)]
mod tests {
    use std::process::Command;

    use clap_complete::Shell;

    use super::*;

    #[test]
    fn programs_are_offered_where_they_stand() {
        if Command::new("fish").arg("--version").output().is_err() {
            println!("not tested here: there is no fish");
            return;
        }
        let mut script = Vec::new();
        clap_complete::generate(
            Shell::Fish,
            &mut super::super::shown(),
            "sovia",
            &mut script,
        );
        let script = with_programs(std::str::from_utf8(&script).expect("text"));
        for (line, wanted) in [
            ("run bas", Some("bash")),
            ("run -q --config /etc/passwd bas", Some("bash")),
            ("run --config=/etc/passwd bas", Some("bash")),
            ("run -- bas", Some("bash")),
            ("check bas", Some("bash")),
            ("explain bas", Some("bash")),
            ("run --config /etc/pass", Some("/etc/passwd")),
            ("run cat /etc/pass", Some("/etc/passwd")),
            ("run --con", Some("--config")),
            ("stat bas", None),
        ] {
            let tab = format!("{script}\ncomplete -C 'sovia {line}'");
            let output = Command::new("fish")
                .args(["--no-config", "-c", &tab])
                .output()
                .expect("fish");
            let said = String::from_utf8(output.stdout).expect("text");
            let mut words = said.lines().filter_map(|line| line.split('\t').next());
            match wanted {
                Some(wanted) => assert!(words.any(|word| word == wanted), "{line}: {said}"),
                None => assert!(!words.any(|word| word == "bash"), "{line}: {said}"),
            }
        }
    }
}
