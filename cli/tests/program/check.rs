use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::folder::{Folder, compile};
use crate::{command, text};

/// The exit status of `sovia check --json`, and what it says.
fn check(program: &Path) -> (Option<i32>, String) {
    let output = command("check --json")
        .arg(program)
        .output()
        .expect("the program starts");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    (output.status.code(), text(&output.stdout).to_owned())
}

#[track_caller]
fn expect(program: &Path, status: i32, said: &[&str]) {
    let (code, text) = check(program);
    assert_eq!(code, Some(status), "{text}");
    for word in said {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn an_ordinary_program_is_accelerated() {
    let folder = Folder::new("ordinary");
    let program = folder.program("ordinary", SOCKETS, &[]);
    expect(&program, 0, &["\"verdict\": \"accelerated\"", "ulimit -n"]);
    let (_, text) = check(&program);
    assert!(!text.contains("no-sockets"), "{text}");
    let idle = folder.program("idle", "int main(void) { return 0; }", &[]);
    expect(&idle, 0, &["no-sockets"]);
}

#[test]
fn what_takes_no_library_stays_on_tcp() {
    let folder = Folder::new("none");
    let program = folder.program("static", SOCKETS, &["-static"]);
    expect(
        &program,
        4,
        &["\"static\"", "peer-without-sovia", "\"number\": 6"],
    );
    let go = format!("{SOCKETS}\n{GO}");
    expect(
        &folder.program("go", &go, &[]),
        4,
        &["\"go\"", "Go program"],
    );
    let script = folder.file("script", format!("#!{}\n", program.display()));
    expect(
        &script,
        4,
        &["\"script\"", "\"static\"", "its interpreter is"],
    );
}

#[test]
fn what_env_takes_the_library_from_stays_on_tcp() {
    let folder = Folder::new("stripped");
    let program = folder.program("server", SOCKETS, &[]);
    let script = folder.file("script", "#!/usr/bin/env -S -i sh\n");
    expect(&script, 4, &["\"stripped\"", "its interpreter is"]);
    for (words, status) in [
        ("env A=1", 0),
        ("env -i", 4),
        ("env -u LD_PRELOAD", 4),
        ("nohup env LD_PRELOAD=", 4),
    ] {
        let line = |sovia: &str| {
            let mut command = command(&format!("{sovia} {words}"));
            let output = command.arg(&program).output().expect("it starts");
            let said = [&*output.stdout, &*output.stderr].concat();
            (output.status.code(), text(&said).to_owned())
        };
        let (code, said) = line("check --json");
        assert_eq!(code, Some(status), "{words}: {said}");
        assert_eq!(said.contains("\"stripped\""), status == 4, "{said}");
        assert_eq!(said.contains("\"number\": 6"), status == 4, "{said}");
        let (code, said) = line("run");
        assert_eq!(code, Some(0), "{words}: {said}");
        let warned = said.contains("server will run, but not over Virtual Interfaces: env starts");
        assert_eq!(warned, status == 4, "{words}: {said}");
    }
}

#[test]
fn what_starts_a_program_is_not_taken_for_it() {
    let folder = Folder::new("started");
    let linked = folder.program("linked", SOCKETS, &[]);
    let alone = folder.program("alone", SOCKETS, &["-static"]);
    let linker = Path::new("/lib64/ld-linux-x86-64.so.2");
    let starters = [Some(Path::new("env")), linker.exists().then_some(linker)];
    for starter in starters.iter().flatten() {
        let said = |program: &Path| {
            let mut run = command("run");
            let output = run.arg(starter).arg(program).output().expect("it starts");
            text(&output.stderr).to_owned()
        };
        assert_eq!(said(&linked), "", "{starter:?}");
        if *starter != linker {
            let said = said(&alone);
            assert!(
                said.contains("alone will run, but not over Virtual Interfaces: it is statically"),
                "{said}"
            );
        }
    }
}

/// `sovia check --json` of `words`, run in `folder`.
#[track_caller]
fn expect_at(folder: &Path, words: &str, status: i32, key: &str) {
    let mut check = command(&format!("check --json {words}"));
    let output = check.current_dir(folder).output().expect("it starts");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(status), "{words}: {said}");
    assert!(said.contains(key), "{words}: {said}");
}

#[test]
fn a_program_is_looked_for_where_it_will_be_started() {
    let folder = Folder::new("elsewhere");
    fs::create_dir(folder.0.join("dd")).expect("a folder");
    folder.program("both", SOCKETS, &[]);
    folder.program("dd/both", SOCKETS, &["-static"]);
    let dd = folder.0.join("dd");
    let dd = dd.to_str().expect("UTF-8");
    folder.file("script", format!("#!/usr/bin/env -S PATH={dd} both\n"));
    folder.file("dd/here", "#!./both\n");
    for (words, status, key) in [
        ("./both", 0, "limits"),
        ("env -C dd ./both", 4, "\"static\""),
        ("env --chd=dd nice ./both", 4, "\"static\""),
        ("env -C dd ./here", 4, "\"static\""),
        ("env PATH=. both", 0, "limits"),
        ("env PATH=dd both", 4, "\"static\""),
        ("env PATH=dd nice both", 127, "\"absent\""),
        ("env -i both", 127, "\"absent\""),
        ("./script", 4, "\"static\""),
    ] {
        expect_at(&folder.0, words, status, key);
    }
}

#[test]
fn libraries_are_looked_for_where_the_program_will_be_told_to() {
    let folder = Folder::new("told");
    fs::create_dir(folder.0.join("lib")).expect("a folder");
    let library = folder.0.join("lib/libother.so");
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libother.so"];
    compile("gcc", &library, "int other;", &shared);
    let library = library.to_str().expect("UTF-8");
    folder.program("user", SOCKETS, &["-Wl,--no-as-needed", library]);
    let linker = "/lib64/ld-linux-x86-64.so.2";
    let by_linker = format!("{linker} --library-path lib ./user");
    let started = format!("{linker} --library-path lib /usr/bin/env ./user");
    for (words, status, key) in [
        ("./user", 127, "library-missing"),
        ("env LD_LIBRARY_PATH=lib ./user", 0, "limits"),
        ("env LD_LIBRARY_PATH=lib -C / ./user", 127, "absent"),
        (
            "env LD_LIBRARY_PATH=lib env -C lib ../user",
            127,
            "library-missing",
        ),
        ("env LD_LIBRARY_PATH=. env -C lib ../user", 0, "limits"),
        (&by_linker, 0, "limits"),
        // The linker does not say it to others.
        (&started, 127, "library-missing"),
    ] {
        if words.starts_with(linker) && !Path::new(linker).exists() {
            println!("not tested here: there is no {linker}");
            continue;
        }
        expect_at(&folder.0, words, status, key);
    }
}

/// The kernel gives all that stands behind an interpreter as one word.
#[test]
fn what_env_would_have_to_split_cannot_run() {
    let folder = Folder::new("unsplit");
    let script = folder.file("script", "#!/usr/bin/env -i sh\n");
    expect(&script, 125, &["\"refused\"", "'-i sh' is one word"]);
    let run = command("run").arg(&script).output().expect("it starts");
    assert_eq!(run.status.code(), Some(125), "{}", text(&run.stderr));
}

#[test]
fn a_setuid_copy_stays_on_tcp() {
    let folder = Folder::new("setuid");
    let program = folder.program("setuid", SOCKETS, &[]);
    if std::os::unix::fs::chown(&program, Some(65534), None).is_err() {
        println!("not tested here: only root can make another user's program");
        return;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("chmod");
    expect(&program, 4, &["\"setuid\""]);
    let mut bound = Command::new("setpriv");
    bound.args(["--no-new-privs", env!("CARGO_BIN_EXE_sovia"), "check"]);
    match bound.arg(&program).output() {
        Err(_) => println!("not tested here: there is no setpriv"),
        Ok(output) => assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout)),
    }
    std::os::unix::fs::chown(&program, Some(0), Some(65534)).expect("it is ours");
    // Without the group's right to execute it that is no setgid.
    for (mode, status) in [(0o2755, 4), (0o2745, 0)] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("chmod");
        expect(&program, status, &[]);
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let options = mounts
        .lines()
        .find_map(|line| line.split(" /dev/shm ").nth(1));
    if !options.is_some_and(|all| all.contains("nosuid") && !all.contains("noexec")) {
        println!("not tested here: /dev/shm is not mounted nosuid");
        return;
    }
    let copy = format!("/dev/shm/sovia-setuid-{}", std::process::id());
    fs::copy(&program, &copy).expect("a copy");
    std::os::unix::fs::chown(&copy, Some(65534), None).expect("it is ours");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).expect("chmod");
    let (code, said) = check(Path::new(&copy));
    fs::remove_file(&copy).expect("it is ours");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_musl_program_stays_on_tcp_and_runs() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        println!("not tested here: there is no musl-gcc");
        return;
    }
    let folder = Folder::new("musl");
    let program = folder.0.join("musl");
    compile("musl-gcc", &program, "int main(void) { return 7; }", &[]);
    expect(&program, 4, &["\"other-libc\"", "ld-musl"]);
    // Its linker gives up a program for which it cannot load what is preloaded.
    let output = command("run").arg(&program).output().expect("it starts");
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not over Virtual Interfaces"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_past_the_c_library_are_hinted_at() {
    let folder = Folder::new("raw");
    let raw = format!("{SOCKETS}\n{RAW}");
    expect(
        &folder.program("raw", &raw, &[]),
        3,
        &[
            "\"raw-calls\"",
            "sendto",
            "\"number\": 27",
            "io-uring",
            "past the C library and liburing",
            "\"number\": 24",
        ],
    );
    let library = folder.0.join("libraw.so");
    compile("gcc", &library, RAW, &["-shared", "-fPIC"]);
    let user = folder.program(
        "user",
        "void calls(void); int main(void) { calls(); }",
        &[
            "-L.",
            library.to_str().expect("UTF-8"),
            "-Wl,-rpath,$ORIGIN",
        ],
    );
    expect(&user, 3, &["libraw.so seems to make"]);
    fs::remove_file(&library).expect("it is there");
    // The linker's own status.
    expect(&user, 127, &["library-missing"]);
    let ran = Command::new(&user).output().expect("it starts");
    assert_eq!(ran.status.code(), Some(127));
}

/// Where they are is said by the program, by its libraries, or by where those were found.
#[test]
fn libraries_are_found_where_the_linker_finds_them() {
    let folder = Folder::new("libraries");
    for sub in ["bin", "lib", "store", "lib/x86_64-linux-gnu", "lib/deep"] {
        fs::create_dir_all(folder.0.join(sub)).expect("a folder");
    }
    let at = |path: &str| folder.0.join(path);
    let inner = "int inner(void) { return 0; }";
    let outer = "int inner(void); int outer(void) { return inner(); }";
    let program = "int outer(void); int main(void) { return outer(); }";
    let library = |path: &str, source: &str, options: &[&str]| {
        let options = [&["-shared", "-fPIC"], options].concat();
        compile("gcc", &at(path), source, &options);
    };
    let link = |path: &str| at(path).to_str().expect("UTF-8").to_owned();
    let old = "-Wl,--disable-new-dtags";
    let none = "-Wl,--allow-shlib-undefined";
    let case = |name: &str, options: &[&str]| {
        let program_at = at("bin").join(name);
        let options = [&[none], options].concat();
        compile("gcc", &program_at, program, &options);
        let ran = Command::new(&program_at).status().expect("it is there");
        let (code, said) = check(&program_at);
        let runs = ran.code() == Some(0);
        assert_eq!(runs, code != Some(127), "{name}: {ran}: {said}");
        assert_eq!(runs, !said.contains("library-missing"), "{name}: {said}");
        runs
    };
    // The program's DT_RPATH is for its libraries, too; DT_RUNPATH is not.
    library("lib/deep/libinner.so", inner, &[]);
    let inner_at = link("lib/deep/libinner.so");
    library(
        "lib/libouter.so",
        outer,
        &["-L", &link("lib/deep"), "-linner"],
    );
    let outer_at = ["-L".to_owned(), link("lib"), "-louter".to_owned()];
    let [l, lib, outer_name] = outer_at.each_ref().map(String::as_str);
    let both = "-Wl,-rpath,$ORIGIN/../lib:$ORIGIN/../lib/deep";
    assert!(case("rpath", &[l, lib, outer_name, old, both]));
    assert!(!case(
        "runpath",
        &[l, lib, outer_name, "-Wl,--enable-new-dtags", both]
    ));
    // A library's $ORIGIN is where it was found, not where a link leads.
    library(
        "store/libouter.so",
        outer,
        &[
            "-L",
            &link("lib/deep"),
            "-linner",
            "-Wl,-rpath,$ORIGIN/deep",
        ],
    );
    fs::remove_file(at("lib/libouter.so")).expect("it is there");
    std::os::unix::fs::symlink("../store/libouter.so", at("lib/libouter.so")).expect("a link");
    assert!(case(
        "origin",
        &[l, lib, outer_name, "-Wl,-rpath,$ORIGIN/../lib"]
    ));
    // Debian's $LIB; others have no library there, and find none.
    fs::rename(&inner_at, at("lib/x86_64-linux-gnu/libinner.so")).expect("it is there");
    library(
        "store/libouter.so",
        outer,
        &[
            "-L",
            &link("lib/x86_64-linux-gnu"),
            "-linner",
            "-Wl,-rpath,$ORIGIN/../$LIB",
        ],
    );
    case("lib", &[l, lib, outer_name, "-Wl,-rpath,$ORIGIN/../lib"]);
    // Who knows what the linker of another system makes of it.
    library(
        "store/libouter.so",
        outer,
        &[
            "-L",
            &link("lib/x86_64-linux-gnu"),
            "-linner",
            "-Wl,-rpath,/opt/$OTHER",
        ],
    );
    expect(
        &at("bin/lib"),
        3,
        &["library-missing", "for the dynamic linker to read"],
    );
}

/// What a ring is for is not in the program; its library is no finding beside it.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_ring_of_liburing_s_is_told_once() {
    let folder = Folder::new("ring");
    let library = folder.0.join("liburing.so.2");
    let ring = format!("{RAW} int io_uring_queue_init(void) {{ calls(); return 0; }}");
    compile("gcc", &library, &ring, &["-shared", "-fPIC"]);
    let program = folder.program(
        "ring",
        "int io_uring_queue_init(void); int main(void) { return io_uring_queue_init(); }",
        &[library.to_str().expect("UTF-8"), "-Wl,-rpath,$ORIGIN"],
    );
    let wanted = ["ring can use io_uring", "cannot be known before it runs"];
    expect(&program, 3, &wanted);
    let (_, text) = check(&program);
    assert_eq!(text.matches("\"io-uring\",").count(), 1, "{text}");
    assert!(!text.contains("raw-calls"), "{text}");
}

#[test]
fn a_filter_of_its_own_is_hinted_at() {
    let folder = Folder::new("filter");
    let program = folder.program("filter", FILTER, &[]);
    expect(&program, 3, &["\"seccomp\"", "\"number\": 28"]);
}

#[test]
fn limits_are_told() {
    let folder = Folder::new("limits");
    let program = folder.program("ordinary", SOCKETS, &[]);
    let config = |name: &str, text: &str| folder.file(name, text);
    let small = config("small", "[connection]\nbuffer-bytes = 65536\n");
    let large = config("large", "[connection]\nbuffer-bytes = 16777216\n");
    let some = config("some", "[[rule]]\nport = 80\nbuffer-bytes = 16777216\n");
    let none = Path::new("").to_owned();
    for (limit, config, status, key) in [
        ("-n 40", &none, 3, "\"descriptors\""),
        ("-f 100", &none, 4, "\"file-size\""),
        ("-l 0", &none, 0, "ulimit -n"),
        // In halves of kilobytes.
        ("-f 1024", &none, 4, "= 2097152, 4 MiB"),
        ("-f 1024", &small, 0, "ulimit -n"),
        ("-f 100", &small, 4, "= 65536, 128 KiB"),
        ("-f 20480", &none, 0, "ulimit -n"),
        ("-f 20480", &large, 4, "= 16777216, 32 MiB"),
        ("-f 20480", &some, 3, "= 16777216, 32 MiB"),
        // In kilobytes.
        (
            "-v 300000",
            &none,
            3,
            "up to 18 connections at a time in shared memory (ulimit -v)",
        ),
        ("-v 300000", &large, 3, "up to 2 connections"),
        ("-v 100000", &large, 4, "\"address-space\""),
    ] {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!(
                "ulimit {limit} && exec \"$0\" check --json --config \"$2\" \"$1\""
            ))
            .arg(env!("CARGO_BIN_EXE_sovia"))
            .arg(&program)
            .arg(config)
            .output()
            .expect("a shell");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{limit}: {said}");
        assert!(said.contains(key), "{limit}: {said}");
        // Of connections in shared memory nothing is promised where there will be none.
        let is_promised = text(&output.stdout).contains("\"limits\"");
        assert_eq!(is_promised, status < 4, "{limit}");
    }
}

#[test]
fn who_else_is_preloaded_is_told() {
    let folder = Folder::new("preloaded");
    let program = folder.program("ordinary", SOCKETS, &[]);
    let other = folder.0.join("libother.so");
    let source = "int connect(int fd, void *to, int len) { return fd + len + (to == 0); }";
    compile("gcc", &other, source, &["-shared", "-fPIC", "-fno-builtin"]);
    let output = command("check")
        .arg(&program)
        .env("LD_PRELOAD", &other)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("other-preload"));
}

/// Found as the linker finds a library without a slash in its name.
#[test]
fn who_else_is_preloaded_by_name_is_told() {
    let folder = Folder::new("named");
    let other = folder.0.join("libother.so");
    let source = "int connect(int fd, void *to, int len) { return fd + len + (to == 0); }";
    compile("gcc", &other, source, &["-shared", "-fPIC", "-fno-builtin"]);
    let program = folder.program("ordinary", SOCKETS, &[]);
    let beside = folder.program("beside", SOCKETS, &["-Wl,-rpath,$ORIGIN"]);
    for (program, path, status) in [
        (&program, "", 0),
        (&program, folder.0.to_str().expect("UTF-8"), 3),
        (&beside, "", 3),
    ] {
        let output = command("check")
            .arg(program)
            .env("LD_PRELOAD", "libother.so")
            .env("LD_LIBRARY_PATH", path)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(status), "{program:?} {path}");
        let told = text(&output.stdout).contains("other-preload");
        assert_eq!(told, status == 3, "{program:?} {path}");
    }
}

#[test]
fn the_status_is_that_of_the_run() {
    let folder = Folder::new("status");
    let [one, other] = ["one", "other"].map(|name| folder.0.join(name));
    let script = |inner: &Path| format!("#!{}\n", inner.display());
    folder.file("one", script(&other));
    folder.file("other", script(&one));
    let one = one.to_str().expect("UTF-8");
    for (words, status) in [
        (one, 126),
        ("--config /no/such/file /no/such", 125),
        ("no-such-starter true", 127),
        ("env no-such-program", 127),
        ("env no-such-program true", 127),
    ] {
        for sovia in ["check", "run"] {
            let output = command(&format!("{sovia} {words}")).output();
            let output = output.expect("it starts");
            let said = [&*output.stdout, &*output.stderr].concat();
            assert_eq!(
                output.status.code(),
                Some(status),
                "{words}: {}",
                text(&said)
            );
        }
    }
    // A pipe is no interpreter, and nothing to wait for.
    let pipe = folder.0.join("pipe");
    let made = Command::new("mkfifo")
        .args(["-m", "755"])
        .arg(&pipe)
        .status();
    assert!(made.expect("mkfifo starts").success());
    let piped = folder.file("piped", script(&pipe));
    for sovia in ["check", "run"] {
        let mut limited = Command::new("timeout");
        limited.args(["10", env!("CARGO_BIN_EXE_sovia"), sovia]);
        let output = limited.arg(&piped).output().expect("it starts");
        assert_eq!(output.status.code(), Some(126), "{sovia}");
    }
    // A starter that is known, and is not there.
    let output = command("check --json numactl -N 0 true")
        .env("PATH", &folder.0)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stdout).contains("numactl: no such program"));
    for sovia in ["check", "run"] {
        let output = command(&format!("{sovia} /bin/true"))
            .env("SOVIA_PRELOAD", "/no/such/libsovia.so")
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(125), "{sovia}");
    }
}

#[test]
fn the_configuration_is_heeded() {
    let folder = Folder::new("ruled");
    let program = folder.program("ruled", SOCKETS, &[]);
    let config = folder.0.join("sovia.toml");
    let mine = "[[rule]]\nprogram = \"ruled\"\nupgrade = \"never\"";
    for (text, status, said) in [
        (mine.to_owned(), 4, "sovia.toml:1"),
        (mine.replace("ruled", "other"), 0, "accelerated"),
        (
            format!("[[rule]]\nport = 80\nupgrade = \"always\"\n{mine}"),
            3,
            "sovia.toml:4",
        ),
        (
            mine.replace("program = \"ruled\"", "port = 80"),
            0,
            "sovia.toml:1",
        ),
        ("[[rule]]\nupgrade = 3".to_owned(), 125, "sovia.toml:2:11"),
    ] {
        fs::write(&config, &text).expect("it is ours");
        let output = command("check --json")
            .arg(&program)
            .env("SOVIA_CONFIG", &config)
            .output()
            .expect("the program starts");
        let told = crate::text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{text}: {told}");
        assert!(told.contains(said), "{said} in {told}");
        let output = command("check --json --config")
            .arg(&config)
            .arg(&program)
            .env("SOVIA_CONFIG", "/no/such/file")
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(status), "{text}");
    }
}

#[test]
fn what_cannot_be_run_has_the_status_of_a_shell() {
    expect(Path::new("/no/such"), 127, &["cannot run", "\"absent\""]);
    expect(Path::new("/etc/passwd"), 126, &["\"forbidden\""]);
    let folder = Folder::new("foreign");
    let mut sparc = vec![0; 120];
    sparc[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    sparc[18] = 43;
    expect(&folder.file("sparc", &sparc), 126, &["\"other-processor\""]);
    sparc[4] = 1;
    sparc[18] = 3;
    #[cfg(target_arch = "x86_64")]
    expect(&folder.file("narrow", &sparc), 4, &["\"32-bit\""]);
    for (program, status, said) in [
        (
            folder.file("lost", "#!/no/such\n"),
            127,
            "its interpreter /no/such",
        ),
        (folder.file("cut", &sparc[..40]), 126, "damaged"),
    ] {
        expect(&program, status, &["cannot run", said]);
        let output = command("run").arg(&program).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status));
        assert!(
            text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
        let output = command("explain --config")
            .arg("")
            .arg(&program)
            .arg(":80")
            .output()
            .expect("it starts");
        // Of one that is damaged it tells what would come before its start.
        if said != "damaged" {
            assert_eq!(output.status.code(), Some(status));
            assert!(text(&output.stderr).contains(said));
        }
    }
    // The shell runs what the kernel does not know.
    expect(
        &folder.file("bare", "exit 3\n"),
        0,
        &["\"script\"", "/bin/sh"],
    );
}

const SOCKETS: &str = "
#include <sys/socket.h>
int main(void) { return socket(AF_INET, SOCK_STREAM, 0) < 0; }
";

/// What the Go linker leaves in a program.
const GO: &str = r#"__asm__(".section .note.go.buildid,\"a\",@note\n .long 4, 4, 4\n .asciz \"Go\"\n .long 0\n .text\n");"#;

#[cfg(target_arch = "x86_64")]
const RAW: &str = r#"
void calls(void) {
    long result;
    __asm__ volatile("movl $44, %%eax; syscall" : "=a"(result) : : "rcx", "r11", "memory");
    __asm__ volatile("movl $425, %%eax; syscall" : "=a"(result) : : "rcx", "r11", "memory");
}
"#;

const FILTER: &str = "
#include <sys/prctl.h>
#include <sys/socket.h>
int main(void) { return socket(AF_INET, SOCK_STREAM, 0) + prctl(PR_SET_SECCOMP, 2, 0, 0, 0); }
";
