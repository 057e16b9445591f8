//! What bash completes after `sovia run`, `check` and `explain`: clap's script offers the options there, and nothing else.

/// The script with `programs.bash` in front of it.
pub(super) fn with_programs(script: &str) -> String {
    let (functions, registered) = script.split_once(REGISTERS).unwrap_or((script, ""));
    let registered = registered.replace("-F _sovia ", "-F _sovia_programs ");
    format!("{functions}{PROGRAMS}{REGISTERS}{registered}")
}

/// Where clap's script stops to define.
const REGISTERS: &str = "if [[ \"${BASH_VERSINFO[0]}\" -eq 4 ";
const PROGRAMS: &str = include_str!("programs.bash");

#[cfg(test)]
mod tests {
    use std::process::Command;

    use clap_complete::Shell;

    use super::*;

    /// What is offered for the last of these words; the directory has `a-file` in it.
    fn offered(words: &[&str]) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("sovia-bash-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of ours");
        std::fs::write(folder.join("a-file"), "").expect("it was made");
        let mut script = Vec::new();
        clap_complete::generate(
            Shell::Bash,
            &mut super::super::shown(),
            "sovia",
            &mut script,
        );
        let script = with_programs(std::str::from_utf8(&script).expect("text"));
        // What the shell does for a Tab, but for `compopt`, which wants one, and files by default.
        let tab = "
            compopt() { :; }
            COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
            by=$(complete -p sovia | sed 's/.*-F \\([^ ]*\\).*/\\1/')
            \"$by\" sovia \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
            [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"))
            printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &format!("{script}\n{tab}"), "bash"]);
        let output = bash.args(words).current_dir(&folder).output();
        std::fs::remove_dir_all(&folder).expect("it is ours");
        let output = output.expect("bash");
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let said = String::from_utf8(output.stdout).expect("text");
        said.lines().map(str::to_owned).collect()
    }

    #[test]
    fn programs_are_offered_where_they_stand() {
        let has = |words: &[&str], wanted: &str| {
            let offered = offered(words);
            assert!(
                offered.iter().any(|word| word == wanted),
                "{words:?}: {offered:?}"
            );
        };
        has(&["sovia", "run", "bas"], "bash");
        has(&["sovia", "run", "/bin/tru"], "/bin/true");
        has(&["sovia", "run", "-q", "--config", "a-file", "bas"], "bash");
        has(&["sovia", "run", "--config", "=", "a-file", "bas"], "bash");
        has(&["sovia", "run", "--", "bas"], "bash");
        has(&["sovia", "check", "bas"], "bash");
        has(&["sovia", "explain", "bas"], "bash");
        // The program's own words.
        has(&["sovia", "run", "cat", "a-"], "a-file");
        // All else is as it was.
        has(&["sovia", "run", "--con"], "--config");
        has(&["sovia", "run", "--config", "a-f"], "a-file");
        has(&["sovia", "ru"], "run");
        has(&["sovia", "bench", "--only", "latency-"], "latency-epoll");
        has(&["sovia", "bench", "--only", "sho"], "short");
        let options = offered(&["sovia", "run", "cat", "-"]);
        assert!(!options.iter().any(|word| word == "--quiet"), "{options:?}");
    }
}
