use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::folder::Folder;
use crate::talk::Talk;
use crate::{command, sovia, stdout_of, text};

const ENOUGH: u32 = 2000;

fn rows(arguments: &str) -> usize {
    stdout_of(&format!("stat --json {arguments}"))
        .matches("\"fd\":")
        .count()
}

#[test]
fn filters_choose() {
    let talk = Talk::new("filters");
    let [server, client] = talk.both(Path::new(""), ENOUGH);
    let said = stdout_of(&format!("stat --json --pid {}", client.pid()));
    let port = said.split("\"peer\": \"127.0.0.1:").nth(1);
    let port = port
        .and_then(|rest| rest.split('"').next())
        .expect("its peer");
    assert_eq!(rows(&format!("sport = :{port} or dport = :{port}")), 2);
    assert_eq!(
        rows(&format!(
            "sport = :{port} and path = shm and program = talk"
        )),
        1
    );
    assert_eq!(rows(&format!("sport = :{port} and not path = shm")), 0);
    assert_eq!(rows(&format!("pid = {} dport = :{port}", client.pid())), 1);
    // No table at all is not what anybody wants.
    assert_eq!(sovia("stat --watch --times 0").status.code(), Some(2));
    let output = sovia("stat sport = :http");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("column 9: :http is no port"), "{said}");
    drop((server, client));
}

#[test]
fn a_name_that_the_kernel_cuts_hides_nobody() {
    let mut talk = Talk::new("names");
    let name = talk.folder.0.join("ééééééééé");
    fs::rename(&talk.program, &name).expect("it is ours");
    talk.program = name;
    let [server, client] = talk.both(Path::new(""), ENOUGH);
    let output = sovia(&format!("stat --json --pid {}", client.pid()));
    assert!(text(&output.stdout).contains("\"program\": \"ééééééé\u{fffd}\""));
    assert_eq!(rows(&format!("pid = {} and program = é*", server.pid())), 1);
    drop((server, client));
}

#[test]
fn who_is_not_under_sovia_is_told_so() {
    let output = sovia(&format!("stat --json --pid {}", std::process::id()));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "[]\n");
    assert!(text(&output.stderr).contains("is not under sovia"));
}

#[test]
fn a_connection_tells_where_it_was() {
    let talk = Talk::new("history");
    let [server, client] = talk.both(Path::new(""), ENOUGH);
    let said = stdout_of(&format!("stat --history --pid {}", server.pid()));
    let ways: Vec<_> = ["tcp 1 not-tried", "tcp 2 meeting", "shm/ring"]
        .iter()
        .map(|way| said.find(way))
        .collect();
    assert!(
        ways.iter().all(Option::is_some) && ways.is_sorted(),
        "{said}"
    );
    drop((server, client));
}

/// A program does not ask for the addresses of a connection that may be a short one.
#[test]
fn young_connections_have_their_addresses() {
    let talk = Talk::new("young");
    let [server, client] = talk.both(Path::new(""), 1);
    let said = [&server, &client].map(|end| stdout_of(&format!("stat --json --pid {}", end.pid())));
    let field = |end: usize, name| {
        let value = said[end].split(&format!("\"{name}\": \"")).nth(1);
        value
            .and_then(|rest| rest.split('"').next())
            .expect("it is shown")
    };
    assert_eq!([field(0, "state"), field(1, "state")], ["young"; 2]);
    assert_eq!(
        [field(0, "local"), field(0, "peer")],
        [field(1, "peer"), field(1, "local")]
    );
    assert!(field(0, "peer").starts_with("127.0.0.1:"), "{}", said[0]);
    drop((server, client));
}

#[test]
fn a_process_counts_what_is_closed() {
    let talk = Talk::new("closed");
    let [server, client] = talk.both(Path::new(""), ENOUGH);
    let of = |pid| stdout_of(&format!("stat --processes --json --pid {pid}"));
    assert!(
        of(server.pid()).contains("\"open\": 1"),
        "{}",
        of(server.pid())
    );
    let moved = u64::from(ENOUGH) * 64;
    let prometheus = stdout_of(&format!("stat --prometheus --pid {}", client.pid()));
    let wanted = format!(
        "sovia_bytes_sent_total{{pid=\"{}\",program=\"talk\"}} {moved}\n",
        client.pid()
    );
    assert!(prometheus.contains(&wanted), "{prometheus}");
    assert!(
        prometheus.contains("path=\"shm/ring\",reason=\"0\",name=\"\"} 1\n"),
        "{prometheus}"
    );
    let pid = format!("pid = {}", client.pid());
    let refused = sovia(&format!("stat --prometheus {pid} path = shm"));
    assert_eq!(refused.status.code(), Some(2));
    stdout_of(&format!("stat --prometheus {pid}"));
    drop((server, client));
}

/// The server never sleeps in `recv`, for it waits before.
#[test]
fn a_sleep_among_others_counts_for_who_ended_it() {
    let talk = Talk::new("sleeps");
    let config = talk
        .folder
        .file("sovia.toml", "[connection]\nspin-us = 0\n");
    for way in ["poll", "select", "epoll"] {
        let run = || {
            let mut command = command("run --config");
            command.arg(&config).arg(&talk.program);
            command
        };
        let mut server = run();
        server.arg("server").env("TALK_WAIT", way);
        let [server, client] = talk.pair(&mut server, run().arg("client"), ENOUGH);
        let said = stdout_of(&format!("stat --json --pid {}", server.pid()));
        assert!(said.contains("\"path\": \"shm/ring\""), "{way}: {said}");
        assert!(!said.contains("\"sleeps\": 0,"), "{way}: {said}");
        let total = stdout_of(&format!("stat --prometheus --pid {}", server.pid()));
        let none = format!(
            "sovia_sleeps_total{{pid=\"{}\",program=\"talk\"}} 0\n",
            server.pid()
        );
        assert!(total.contains("sovia_sleeps_total"), "{way}: {total}");
        assert!(!total.contains(&none), "{way}: {total}");
        drop((server, client));
    }
}

#[test]
fn vis_are_shown_as_well() {
    let moved = u64::from(ENOUGH) * 64;
    // Below the ports that the kernel gives to whoever connects.
    let port = 10_000 + std::process::id() % 20_000;
    let door = format!("SOVIA_IWARP=127.0.0.1:{port}");
    for (setting, path) in [
        ("TALK_TYPE=15", "shm/packet"),
        ("TALK_TYPE=15 SOVIA_PACKET=nic=iwarp", "iwarp/packet"),
        ("TALK_MODE=1", "shm/extended"),
        ("TALK_MODE=2", "iwarp/extended"),
    ] {
        let talk = Talk::new("vis");
        let run = || {
            let mut command = command("run --config");
            command.arg("").arg("env").args(setting.split(' '));
            command.arg(&door).arg(&talk.program);
            command
        };
        let [server, client] = talk.pair(run().arg("server"), run().arg("client"), ENOUGH);
        let here = format!("pid = {} or pid = {}", server.pid(), client.pid());
        let said = stdout_of(&format!("stat --json path = {path} and ({here})"));
        for (field, times) in [
            (format!("\"path\": \"{path}\""), 4),
            (format!("\"bytes_sent\": {moved}"), 2),
            (format!("\"bytes_received\": {moved}"), 2),
            (format!("\"calls_sent\": {ENOUGH}"), 2),
            ("\"state\": \"via\"".to_owned(), 2),
            ("\"origin\": \"accepted\"".to_owned(), 1),
        ] {
            assert_eq!(said.matches(&field).count(), times, "{field} in {said}");
        }
        let told = stdout_of(&format!("stat {here}"));
        assert_eq!(told.matches(path).count(), 2, "{told}");
        let prometheus = stdout_of(&format!("stat --prometheus pid = {}", client.pid()));
        let wanted = format!("path=\"{path}\",reason=\"0\",name=\"\"}} 1\n");
        assert!(prometheus.contains(&wanted), "{prometheus}");
        let rates = stdout_of(&format!("stat --watch=0.05 --times 1 {here}"));
        assert_eq!(rates.matches(path).count(), 2, "{rates}");
        drop((server, client));
    }
}

/// Nothing is found where nothing may be looked at.
#[test]
fn who_sees_nothing_is_told_that_there_may_be_more() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested here: it takes root to become another user");
        return;
    }
    let folder = Folder::new("other-user");
    let copy = folder.0.join("sovia");
    fs::copy(env!("CARGO_BIN_EXE_sovia"), &copy).expect("a copy");
    let stat = |words: &[&str]| {
        let output = Command::new(&copy)
            .arg("stat")
            .args(words)
            .uid(NOBODY)
            .output();
        let output = output.expect("the copy starts");
        assert!(output.status.success(), "{words:?}");
        text(&output.stderr).to_owned()
    };
    let hint = "processes of other users were not looked at";
    assert!(stat(&[]).contains(hint));
    assert!(stat(&["--processes"]).contains(hint));
    assert!(stat(&["--json"]).contains(hint));
    assert!(stat(&["--processes", "--json"]).contains(hint));
    assert!(stat(&["--prometheus"]).contains(hint));
    let watched = stat(&["--watch=0.05", "--times", "2"]);
    assert_eq!(watched.matches(hint).count(), 1);
    assert_eq!(stat(&["--reasons"]), "");
    let output = sovia("stat pid = 1");
    assert_eq!(text(&output.stderr), "", "root sees all");
}

/// A user who has no processes.
const NOBODY: u32 = 65534;

#[test]
fn scrapes_are_answered() {
    let mut listening = command("stat --prometheus --listen 0");
    listening.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut listening = listening.spawn().expect("it starts");
    let mut said = String::new();
    let stdout = listening.stdout.take().expect("a pipe");
    BufReader::new(stdout)
        .read_line(&mut said)
        .expect("its address");
    let address = said
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    // A second one cannot, and says where.
    let second = sovia(&format!("stat --prometheus --listen {address}"));
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains(address), "{second:?}");
    // One that goes at once harms nobody.
    drop(TcpStream::connect(address).expect("it listens"));
    // One that takes its time does not get all of it.
    let mut slow = TcpStream::connect(address).expect("it listens");
    let slow = std::thread::spawn(move || {
        while slow.write_all(b"x").is_ok() {
            // tidy: sleep because a client that takes its time is the thing
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let mut scrape = TcpStream::connect(address).expect("it listens");
    scrape
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    scrape.read_to_string(&mut answer).expect("it answers");
    listening
        .kill()
        .and_then(|()| listening.wait())
        .expect("it is ours");
    slow.join().expect("it ends");
    // Of the second nobody is told so soon after.
    let mut complaints = String::new();
    let mut stderr = listening.stderr.take().expect("a pipe");
    stderr
        .read_to_string(&mut complaints)
        .expect("it has ended");
    let gone = "a scrape: the client ended before it had sent a request\n";
    assert!(complaints.contains(gone), "{complaints}");
    assert_eq!(complaints.matches("a scrape").count(), 1, "{complaints}");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("# TYPE sovia_connections gauge"),
        "{answer}"
    );
    assert_eq!(
        sovia("stat --prometheus --listen 0.0.0.0:1").status.code(),
        Some(2)
    );
}

#[test]
fn what_is_no_terminal_gets_tables() {
    let talk = Talk::new("watch");
    let [server, client] = talk.both(Path::new(""), ENOUGH);
    let said = stdout_of(&format!(
        "stat --watch=0.05 --times 2 --pid {}",
        client.pid()
    ));
    assert_eq!(said.matches("sent/s").count(), 2, "{said}");
    assert_eq!(sovia("stat --watch=0").status.code(), Some(2));
    drop((server, client));
}

/// `sovia stat` on a terminal of this kind.
fn on_a_terminal(kind: &str, words: &str) -> Option<std::process::Child> {
    let line = format!(
        "stty rows 24 cols 80; exec {} stat {words}",
        env!("CARGO_BIN_EXE_sovia")
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]);
    script.env("TERM", kind).env("SHELL", "/bin/sh");
    let script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    if script.is_err() {
        println!("not tested here: there is no script(1)");
    }
    script.ok()
}

#[test]
fn a_terminal_is_given_back_when_somebody_ends_it() {
    for signal in ["-TERM", "-HUP"] {
        let Some(mut script) = on_a_terminal("xterm", "--watch=60") else {
            return;
        };
        let mut stdout = script.stdout.take().expect("a pipe");
        let mut shown = Vec::new();
        while !String::from_utf8_lossy(&shown).contains("q quit") {
            let mut some = [0; 4096];
            let len = stdout.read(&mut some).expect("it shows something");
            assert_ne!(len, 0, "{}", String::from_utf8_lossy(&shown));
            shown.extend(&some[..len]);
        }
        let id = script.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.expect("the kernel tells");
        let killed = Command::new("kill")
            .args([signal, children.trim()])
            .status();
        assert!(killed.expect("kill starts").success());
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("it ends");
        assert!(rest.contains("\u{1b}[?1049l"), "{signal}: {rest:?}");
        assert!(rest.ends_with("\u{1b}[?25h"), "{signal}: {rest:?}");
        let ended = script.wait().expect("it is ours");
        assert_ne!(ended.code(), Some(0), "{signal}");
    }
}

#[test]
fn a_terminal_that_knows_nothing_gets_tables() {
    let Some(script) = on_a_terminal("dumb", "--watch=0.05 --times 1") else {
        return;
    };
    let output = script.wait_with_output().expect("it ends");
    let shown = text(&output.stdout);
    assert!(!shown.is_empty() && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn root_sees_other_users_and_they_do_not_see_root() {
    let talk = Talk::new("users");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&talk.folder.0, open).expect("chmod");
    let nobody = || {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--",
        ]);
        command.arg(env!("CARGO_BIN_EXE_sovia"));
        command
    };
    if !nobody()
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!(
            "not tested here: only root can be another user, with setpriv, and only where nobody may run this program"
        );
        return;
    }
    // Whose home it is who started them; there may be a configuration, for all that they know.
    let home = talk.folder.0.join("home");
    fs::create_dir(&home).expect("a folder");
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(&home, closed).expect("chmod");
    let run = |word| {
        let mut command = nobody();
        command
            .env_remove("SOVIA_CONFIG")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", &home);
        command.arg("run").arg(&talk.program).arg(word);
        command
    };
    let mut root = command("run");
    root.arg("--config")
        .arg("")
        .arg(&talk.program)
        .arg("client");
    let [server, client] = talk.pair(&mut run("server"), &mut root, ENOUGH);
    let both = format!("pid = {} or pid = {}", server.pid(), client.pid());
    assert_eq!(rows(&both), 2);
    let theirs = nobody().args(["stat", "--json", &both]).output();
    let theirs = theirs.expect("it starts");
    assert_eq!(text(&theirs.stdout).matches("\"fd\":").count(), 1);
    drop((server, client));
}

/// A process that has a root of its own may give any file the name of what is looked for.
#[test]
fn a_pipe_with_the_name_of_a_ledger_is_not_waited_for() {
    let script = r#"
        mount -t tmpfs none /mnt && cd /mnt && mkdir old && mkfifo memfd:sovia-process || exit 1
        exec 4<>memfd:sovia-process 3<memfd:sovia-process 4>&-
        pivot_root . old || exit 1
        echo ready
        read over"#;
    let mut other = Command::new("unshare");
    other.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    other.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut other = other.spawn().expect("util-linux is there");
    let stdout = other.stdout.take().expect("a pipe");
    let mut said = String::new();
    BufReader::new(stdout)
        .read_line(&mut said)
        .expect("a line or none");
    if said == "ready\n" {
        let link = fs::read_link(format!("/proc/{}/fd/3", other.id())).expect("its pipe");
        assert_eq!(link, Path::new("/memfd:sovia-process"));
        let mut stat = Command::new("timeout");
        stat.args(["10", env!("CARGO_BIN_EXE_sovia"), "stat", "--pid"]);
        let output = stat.arg(other.id().to_string()).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("is not under sovia"));
    } else {
        println!("not tested here: nobody may make himself another root");
    }
    drop(other.stdin.take());
    other.wait().expect("it is ours");
}

/// Starts a program that says when it is ready, and waits.
fn ready(command: &mut Command) -> std::process::Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = [0];
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut first).expect("it is ready");
    child
}

#[test]
fn one_of_another_version_is_named() {
    let folder = Folder::new("strange");
    let source = "
        #define _GNU_SOURCE
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) { memfd_create(\"sovia-process\", 0); write(1, \"x\", 1); return pause(); }";
    let mut other = ready(&mut Command::new(folder.program("strange", source, &[])));
    let output = sovia(&format!("stat --pid {}", other.id()));
    other
        .kill()
        .and_then(|()| other.wait())
        .expect("it is ours");
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stderr);
    let named = format!("another version of sovia: [{}]\n", other.id());
    assert!(
        told.ends_with(&named) && told.lines().count() == 1,
        "{told}"
    );
}

#[test]
fn why_an_own_process_is_not_shown_is_said() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested here: it takes root to become another user, who sees less");
        return;
    }
    let folder = Folder::new("closed");
    let source = "
        #include <sys/prctl.h>
        #include <unistd.h>
        int main(void) { prctl(PR_SET_DUMPABLE, 0); write(1, \"x\", 1); return pause(); }";
    let program = folder.program("closed", source, &[]);
    let copy = folder.0.join("sovia");
    fs::copy(env!("CARGO_BIN_EXE_sovia"), &copy).expect("a copy");
    let mut closed = ready(Command::new(program).uid(NOBODY));
    for (pid, said) in [
        (closed.id(), "it lets nobody look at it"),
        (1, "another user's"),
    ] {
        let mut stat = Command::new(&copy);
        let output = stat
            .args(["stat", "--pid", &pid.to_string()])
            .uid(NOBODY)
            .output();
        let output = output.expect("the copy starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
    }
    closed
        .kill()
        .and_then(|()| closed.wait())
        .expect("it is ours");
}

#[test]
fn what_cannot_be_shown_is_said() {
    for (words, said) in [
        ("stat --watch 1", "--watch=1"),
        // More than the kernel ever gives out.
        ("stat --pid 999999999", "process 999999999: no such process"),
    ] {
        let output = command(words).output().expect("it starts");
        assert!(!output.status.success(), "{words}");
        let told = text(&output.stderr);
        assert!(told.contains(said), "{words}: {told}");
    }
}
