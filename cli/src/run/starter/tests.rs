use std::path::PathBuf;

use super::*;

fn last(words: impl IntoIterator<Item = OsString>) -> Start {
    followed(words, Place::default()).last
}

#[test]
fn starters_are_followed() {
    for (line, program) in [
        ("redis-server --port 1", "redis-server"),
        ("env A=1 B=2 server x", "server"),
        ("/usr/bin/env -i nohup setsid -w server", "server"),
        ("env", "env"),
        ("env A=1", "env"),
        ("env -u VAR server", "server"),
        ("env -iu VAR server", "server"),
        ("env -uVAR -C / A=1 server -u x", "server"),
        ("env --unset VAR --chdir=/ -- server", "server"),
        ("env - server", "server"),
        ("nice -n 19 server", "server"),
        ("nice -19 server", "server"),
        ("nice --adj 5 server", "server"),
        ("env --unse VAR --ch / server", "server"),
        ("timeout --kill 5 --s INT 7 server", "server"),
        ("numactl --preferred-many 0 server", "server"),
        ("timeout -k 5 --signal=INT 7 env A=1 server", "server"),
        ("timeout 5", "timeout"),
        ("taskset 03 server -b 1024", "server"),
        ("taskset -c 0,2 env A=1 server", "server"),
        ("taskset --cpu-list 0 server", "server"),
        ("taskset -p 700", "taskset"),
        ("chrt -r 50 nice server", "server"),
        (
            "chrt -d --sched-runtime 5000 -D 10000 -P 10000 0 server",
            "server",
        ),
        ("ionice -c3 -n 7 server", "server"),
        ("stdbuf -oL --error=0 server", "server"),
        ("/usr/bin/time -f %e -o log server", "server"),
        ("numactl -N 0 --membind=0 -l server -m 1", "server"),
        (
            "/lib64/ld-linux-x86-64.so.2 --library-path /lib --argv0 x ./server",
            "./server",
        ),
        ("/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
    ] {
        let words = line.split(' ').map(OsString::from);
        assert_eq!(last(words).program, program, "{line}");
    }
    for (word, program) in [
        ("-S -u X python3", "python3"),
        ("-iS  A=1 python3 -u", "python3"),
        ("--split-string=python3", "python3"),
        ("-Senv", "env"),
        // Without -S the rest of the line is one word.
        ("python3 -u", "python3 -u"),
    ] {
        let words = ["/usr/bin/env", word, "script"].map(OsString::from);
        let expected = if program == "env" { "script" } else { program };
        assert_eq!(last(words).program, expected, "{word}");
    }
}

#[test]
fn what_takes_the_library_away_is_noticed() {
    for (line, loses) in [
        ("server -i", false),
        ("env server -i", false),
        ("env A=i -i server", false),
        ("env -i server", true),
        ("env - server", true),
        ("env -vi A=1 nohup server", true),
        ("env --ignore-environment server", true),
        ("env --ignore-env server", true),
        ("env --ignore-signal=INT server", false),
        ("env -ui server", false),
        ("env -u i server", false),
        ("env -u LD_PRELOAD server", true),
        ("env -uLD_PRELOAD server", true),
        ("env --unset=LD_PRELOAD server", true),
        ("env -u LD_PRELOADS server", false),
        ("nice -n 5 env LD_PRELOAD= server", true),
        ("env LD_PRELOAD=/lib/libjemalloc.so server", true),
        ("env LD_PRELOADS= server", false),
        (
            "env -i LD_PRELOAD=/lib/other.so:/x/libsovia.so server",
            false,
        ),
        ("env -i env LD_PRELOAD=/x/libsovia.so server", false),
        ("env -S-i server", true),
        // Then it is env that runs.
        ("env -i", false),
    ] {
        let words = line.split(' ').map(OsString::from);
        assert_eq!(last(words).loses_preload, loses, "{line}");
    }
}

#[test]
fn what_names_mean_is_followed() {
    let list = |place: &Place| place.programs().collect::<Vec<_>>();
    let libraries = |place: &Place| place.libraries().to_owned();
    let linker = LINKERS[0];
    for (line, folder, path, library_path) in [
        ("env -C dd ./server", "dd", "/bin", ""),
        ("env -C a --chdir=dd env -C ee server", "dd/ee", "/bin", ""),
        ("env -C dd env -C /ee server", "/ee", "/bin", ""),
        ("env PATH=/x LD_LIBRARY_PATH=/y server", "", "/x", "/y"),
        ("env LD_LIBRARY_PATH=/y nice -n 1 server", "", "/bin", "/y"),
        ("env PATH=/x env -i server", "", "/bin", ""),
        ("env PATH=/x env -u PATH server", "", "/bin", ""),
        ("env -S PATH=/x LD_LIBRARY_PATH=/y server", "", "/x", "/y"),
        (
            &format!("{linker} --library-path /z ./server"),
            "",
            "/bin",
            "/z",
        ),
        (
            &format!("env LD_LIBRARY_PATH=/y {linker} --library-path /z nice ./server"),
            "",
            "/bin",
            "/y",
        ),
    ] {
        let mut words = line.split(' ').map(OsString::from).collect::<Vec<_>>();
        if line.starts_with("env -S") {
            let rest = words.split_off(2).join(OsStr::new(" "));
            words = [OsString::from("env"), OsString::from("-S"), rest].into();
        }
        let place = last(words).place;
        assert_eq!(place.folder, PathBuf::from(folder), "{line}");
        assert_eq!(list(&place)[0], Path::new(path), "{line}");
        assert_eq!(libraries(&place), library_path, "{line}");
    }
}

/// As the kernel gives it to the interpreter of a script.
#[test]
fn an_option_with_a_blank_is_none() {
    for (word, is_refused) in [
        ("-i python3", true),
        ("-iv python3", true),
        ("--ignore-environment python3", true),
        ("-S -i python3", false),
        ("-iSpython3 -u", false),
        ("--split-string=python3 -u", false),
        ("python3 -u", false),
    ] {
        let words = ["/usr/bin/env", word, "script"].map(OsString::from);
        let refused = followed(words, Place::default()).refused;
        assert_eq!(refused.is_some(), is_refused, "{word}");
    }
}
