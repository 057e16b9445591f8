use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::folder::Folder;
use crate::{command, command_with_signals, sovia, stdout_of, text};

/// What a client answers to these orders.
fn orders(arguments: &str, orders: &str) -> Vec<Vec<u64>> {
    let mut client = command(&format!("plain {arguments}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the client starts");
    let mut stdin = client.stdin.take().expect("it was asked for");
    stdin.write_all(orders.as_bytes()).expect("it reads");
    drop(stdin);
    let output = client.wait_with_output().expect("its end");
    assert!(output.status.success(), "{arguments}");
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a list of numbers"))
        .collect()
}

#[test]
fn each_client_carries_out_each_order_with_its_server() {
    for (server, client) in [
        ("echo-server", "echo-client {} 64"),
        ("echo-epoll-server", "echo-epoll-client {} 64"),
        ("echo-epoll-server", "echo-epoll-client {} 64 20"),
        ("echo-server", "short-client {} 64"),
        ("echo-epoll-server", "crowd-client {} 64 20"),
        ("sink-server", "stream-client {} 65536"),
        ("sink-epoll-server", "stream-epoll-client {} 65536"),
        // Messages that no socket takes at once.
        ("echo-server 8000000", "echo-client {} 8000000"),
        ("echo-epoll-server 8000000", "echo-epoll-client {} 8000000"),
        ("echo-server 64 --unix", "echo-client {} 64"),
        ("echo-epoll-server --unix", "echo-epoll-client {} 64"),
        ("sink-epoll-server --unix", "stream-epoll-client {} 65536"),
        ("echo-server --unix", "short-client {} 64"),
        ("echo-server", "short-client {} 64 8"),
        ("fetch-server 4000000", "fetch-client {} 4000000"),
        ("fetch-server 100 --unix", "fetch-client {} 100"),
    ] {
        let mut process = command(&format!("plain {server}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut address = String::new();
        let stdout = process.stdout.take().expect("it was asked for");
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("its address");
        let client = client.replace("{}", address.trim_end());
        let answers = orders(
            &client,
            "{\"blocks\":{\"blocks\":3,\"rounds\":5}}\n{\"span\":{\"ms\":1}}\n",
        );
        process
            .kill()
            .and_then(|()| process.wait())
            .expect("the server was still there");
        assert_eq!(answers.len(), 2, "{client}");
        assert_eq!(answers[0].len(), 3, "{client}");
        let [rounds, ns] = answers[1][..] else {
            panic!("{client}: {answers:?}");
        };
        assert!(rounds > 0 && ns >= 1_000_000, "{client}");
    }
}

/// Somebody who may have no congestion control but what the host allows to all.
#[test]
fn it_needs_no_rights() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested here: all other tests are without rights");
        return;
    }
    let folder = Folder::new("no-rights");
    let shared = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&folder.0, shared).expect("it is ours");
    for arguments in [
        "bench --quick --only connects",
        "vi netpipe --transport tcp,vi --wait block --sizes 64",
    ] {
        let output = command(arguments)
            .env("TMPDIR", &folder.0)
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .output();
        match output {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                println!("not tested here: nobody may not start the program");
            }
            output => {
                let output = output.expect("the program starts");
                let said = text(&output.stdout);
                assert!(output.status.success(), "{said}{}", text(&output.stderr));
            }
        }
    }
}

/// What is to be TCP's is so where all programs are under sovia.
#[test]
fn the_library_is_not_in_front_of_what_is_compared_with() {
    let folder = Folder::new("preloaded");
    let trace = folder.0.join("upgrades");
    std::fs::write(&trace, "").expect("a file");
    let library = std::env::var_os("SOVIA_PRELOAD").map(std::path::PathBuf::from);
    let library = library.unwrap_or_else(|| {
        std::path::Path::new(env!("CARGO_BIN_EXE_sovia")).with_file_name("libsovia.so")
    });
    if !library.exists() {
        println!("not tested here: there is no {}", library.display());
        return;
    }
    for arguments in [
        "bench sockets --quick --row one-end --json -",
        "bench sockets --quick --row pingpong --json -",
        "vi netpipe --transport tcp --wait block --sizes 64 --json -",
    ] {
        let output = command(arguments)
            .env("LD_PRELOAD", &library)
            .env("SOVIA_TRACE_UPGRADE", &trace)
            .output()
            .expect("the program starts");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        let traced = std::fs::read_to_string(&trace).expect("it is ours");
        assert_eq!(traced, "", "{arguments}");
        let report: serde_json::Value = serde_json::from_str(said).expect("JSON");
        let lines = report["lines"].as_array().cloned().unwrap_or_default();
        for way in lines
            .iter()
            .filter_map(|line| line["ways"].as_array())
            .flatten()
        {
            assert_eq!(way["upgraded"], way["way"] == "sovia", "{arguments}: {way}");
        }
    }
}

#[test]
fn a_row_has_figures_for_each_way() {
    let path = std::env::temp_dir().join(format!("sovia-bench-{}.svg", std::process::id()));
    let stdout = stdout_of(&format!(
        "bench sockets --quick --row pingpong one-end --json - --svg {}",
        path.display()
    ));
    let drawn = std::fs::read_to_string(&path).expect("a drawing");
    std::fs::remove_file(&path).expect("it is ours");
    assert!(drawn.contains("64 B there and back, epoll"));
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(report["conditions"]["affinity"].is_array());
    let lines = report["lines"].as_array().expect("lines");
    assert!(lines.len() >= 6, "{stdout}");
    let ends = |line: &serde_json::Value| -> Vec<String> {
        let ways = line["ways"].as_array().expect("ways");
        ways.iter()
            .map(|way| {
                assert!(way["runs"].as_array().map(Vec::len) >= Some(5), "{way}");
                assert!(way["best"].as_f64().is_some_and(|best| best > 0.0), "{way}");
                way["way"].as_str().expect("a name").to_owned()
            })
            .collect()
    };
    assert_eq!(ends(&lines[0]), ["tcp", "sovia"]);
    assert_eq!(ends(&lines[1]), ["tcp", "server-only", "client-only"]);
}

#[test]
fn the_report_has_medians_and_verdicts_and_plots() {
    let path = std::env::temp_dir().join(format!("sovia-bench-{}.html", std::process::id()));
    let stdout = stdout_of(&format!(
        "bench --quick --only epoll,connects --html {}",
        path.display()
    ));
    let html = std::fs::read_to_string(&path).expect("a report");
    std::fs::remove_file(&path).expect("it is ours");
    for expected in ["Unix", "between", "target", "machine: "] {
        assert!(stdout.contains(expected), "no {expected:?} in\n{stdout}");
        assert!(html.contains(expected), "no {expected:?} in\n{html}");
    }
    assert!(html.matches("<svg").count() == 2 && !html.contains("<script"));
}

/// How many left TCP is said of each; that some did not is no fault.
#[test]
fn short_connections_are_told_by_what_they_exchange() {
    let folder = Folder::new("short");
    let html = folder.0.join("short.html");
    let json = folder.0.join("short.json");
    let output = command("bench --quick --only short")
        .arg("--html")
        .arg(&html)
        .arg("--json")
        .arg(&json)
        .output()
        .expect("the program starts");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("left TCP") && !said.contains('¹') && !said.contains('²'));
    let html = std::fs::read_to_string(&html).expect("a report");
    assert_eq!(html.matches("<svg").count(), 2);
    let json = std::fs::read_to_string(&json).expect("figures");
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let lines = report["lines"].as_array().expect("lines");
    let on = |axis: &str| lines.iter().filter(|line| line[axis].is_u64()).count();
    assert_eq!((on("round_trips"), on("received")), (3, 3), "{json}");
    for line in lines {
        assert_eq!(line["lasts"], false, "{line}");
        let ways = line["ways"].as_array().expect("ways");
        let sovia = ways.iter().find(|way| way["way"] == "sovia");
        let left = sovia.map(|way| (&way["left_tcp"][0], &way["left_tcp"][1]));
        assert!(
            left.is_some_and(|(left, all)| left.is_u64() && all == 64),
            "{line}"
        );
    }
}

#[test]
fn misuse_is_refused_with_status_2() {
    for arguments in [
        "bench --only marathon",
        "bench --only shrot",
        "bench --only stat sockets",
        "bench sockets --row marathon",
        "bench sockets --json",
        "bench --html -",
        "bench sockets --svg -",
        "vi netpipe --svg -",
        "demo --rows 7",
        "plain",
        "plain echo-client somewhere 64",
    ] {
        let output = sovia(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
    let folder = Folder::new("twice");
    let file = folder.0.join("a");
    let output = command("bench --quick --only connects --json")
        .arg(&file)
        .arg("--html")
        .arg(folder.0.join(".").join("a"))
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("named twice"));
    let output = sovia("demo --json /nowhere/at.json");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/at.json"));
}

#[test]
fn a_report_that_cannot_be_written_is_not_lost() {
    let folder = Folder::new("unwritable");
    let json = folder.0.join("figures.json");
    let output = command("bench --quick --only connects --html /dev/full --json")
        .arg(&json)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/dev/full"));
    assert!(text(&output.stdout).contains("between"));
    let json = std::fs::read_to_string(&json).expect("it is written");
    assert!(json.contains("\"conditions\""), "{json}");
}

#[test]
fn a_name_that_is_no_text_loses_no_figures() {
    let folder = Folder::new("bytes");
    let json = folder.0.join(OsStr::from_bytes(b"\xff.json"));
    let output = command("bench sockets --quick --row one-end --json")
        .arg(&json)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(json.exists());
}

#[test]
fn the_demo_compares_in_each_line() {
    let stdout = stdout_of("demo --quick");
    for expected in ["send/recv", "epoll", "64 kB writes", "connect", "machine: "] {
        assert!(stdout.contains(expected), "no {expected:?} in\n{stdout}");
    }
    assert!(stdout.matches('×').count() >= 15, "{stdout}");
}

#[test]
fn the_iwarp_paper_s_figures() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        println!("not tested here: it takes two CPUs");
        return;
    }
    let sockets = [
        "Figure 5(a)",
        "Figure 6(b)",
        "64k stream, extended sockets, CRC / TCP",
        "64k stream, extended sockets, CRC, markers / TCP",
        "64k stream, extended, send and recv / TCP",
    ];
    shows("--way tcp,extended,extended-markers,stream-plain", &sockets);
    if !rustix::process::geteuid().is_root() {
        println!("not tested here: --namespaces, which takes root");
        return;
    }
    let records = [
        "1M stream, VI, CRC, markers / TCP",
        "1M stream, bare calls, CRC, markers / TCP",
    ];
    shows(
        "--way spinning,crc-markers,bare-markers --namespaces",
        &records,
    );
}

fn shows(options: &str, rows: &[&str]) {
    let output = sovia(&format!("bench paper-iwarp --quick {options}"));
    let said = text(&output.stdout);
    let complaints = text(&output.stderr);
    assert!(output.status.success(), "{options}: {complaints}");
    for row in rows {
        assert!(said.contains(row), "{options}: {row} in {said}");
    }
}

#[test]
fn programs_of_the_paper_that_are_not_installed_are_named() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: the ends of bench paper-sovia have a CPU each, and there is one");
        return;
    }
    let output = command("bench paper-sovia --quick --part table1,figure10")
        .env("PATH", "/nonexistent")
        .output()
        .expect("it runs");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for what in [
        "own transfer, packets",
        "messages alone, SOVIA_SINGLE",
        "tnftp",
        "rpcsvc-proto",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
}

/// The processes of a group, by name.
fn members(group: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("it is there");
    let stats =
        processes.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let (before, after) = stat.rsplit_once(") ")?;
            let of: u32 = after.split(' ').nth(2)?.parse().ok()?;
            (of == group).then(|| before.split_once('(').map(|(_, name)| name.to_owned()))?
        })
        .collect()
}

/// The folders that a process has made for this.
fn ours(parent: &std::path::Path, purpose: &str, process: u32) -> Vec<std::path::PathBuf> {
    let name = format!("sovia-{purpose}-{process}-");
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains(&name))
        .collect()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

#[test]
fn who_is_told_to_end_leaves_no_server_behind() {
    if !is_installed("redis-server") {
        println!("not tested here: redis-server is not installed");
        return;
    }
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let folder = Folder::new("told-to-end");
        let mut bench = command_with_signals(HEEDING, "bench --quick --only redis")
            .env("TMPDIR", &folder.0)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stderr = bench.stderr.take().expect("it was asked for");
        let group = bench.id();
        while !members(group).iter().any(|name| name == "redis-server") {
            assert!(bench.try_wait().expect("it is ours").is_none());
            std::thread::yield_now();
        }
        let pid = Pid::from_child(&bench);
        kill_process(pid, signal).expect("it is still there");
        bench.wait().expect("it is ours");
        // All that it has started have this end of the pipe.
        let (all_ended, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = stderr.read_to_end(&mut Vec::new());
            let _ = all_ended.send(());
        });
        let ended = heard.recv_timeout(PATIENCE);
        let left = members(group);
        let _ = kill_process_group(pid, Signal::KILL);
        assert!(ended.is_ok(), "{signal:?}: {left:?}");
        let files = std::fs::read_dir(&folder.0).expect("it is ours").count();
        assert!(files == 0 || signal == Signal::KILL, "{signal:?}");
        let memory = ours(std::path::Path::new("/dev/shm"), "bench", group);
        if signal == Signal::KILL {
            // Nobody else does; where there is little memory it is in the other folder.
            for folder in memory {
                std::fs::remove_dir_all(folder).expect("it is ours");
            }
        } else {
            assert_eq!(memory, [] as [std::path::PathBuf; 0], "{signal:?}");
        }
    }
}

/// A terminal that is closed ends nothing that `nohup` has started.
#[test]
fn what_is_ignored_from_the_start_stays_so() {
    let mut bench =
        command_with_signals("--ignore-signal=HUP,INT", "bench --quick --only connects")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
    // Before it starts others it has said what ends it.
    while members(bench.id()).len() < 2 {
        assert!(bench.try_wait().expect("it is ours").is_none());
        std::thread::yield_now();
    }
    for signal in [Signal::HUP, Signal::INT] {
        kill_process(Pid::from_child(&bench), signal).expect("it is still there");
    }
    let ended = bench.wait().expect("it is ours");
    assert!(ended.success(), "{ended}");
}

const HEEDING: &str = "--default-signal=HUP,INT";

/// PostgreSQL removes its own when it ends in order, for which it needs its files.
#[test]
fn who_is_told_to_end_leaves_no_memory_of_a_server_s() {
    if !is_installed("pgbench") {
        println!("not tested here: PostgreSQL is not installed");
        return;
    }
    let folder = Folder::new("memory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&folder.0, open).expect("it is ours");
    let mut bench = command("bench --quick --only pgbench")
        .env("TMPDIR", &folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let memory = || {
        let id = std::fs::read_dir(&folder.0).ok()?.flatten().next()?.path();
        let file = id.join("upgrades-0.files/data/postmaster.pid");
        let server = std::fs::read_to_string(file).ok()?;
        let maps =
            std::fs::read_to_string(format!("/proc/{}/maps", server.lines().next()?)).ok()?;
        let mut paths = maps.lines().filter_map(|line| line.split(' ').next_back());
        let path = paths.find(|path| path.starts_with("/dev/shm/PostgreSQL."))?;
        Some(std::path::PathBuf::from(path))
    };
    let memory = loop {
        if let Some(memory) = memory() {
            break memory;
        }
        assert!(bench.try_wait().expect("it is ours").is_none());
        std::thread::yield_now();
    };
    assert!(memory.exists());
    kill_process(Pid::from_child(&bench), Signal::TERM).expect("it is still there");
    bench.wait().expect("it is ours");
    assert!(!memory.exists(), "{}", memory.display());
}

/// Its files are in memory, and of hundreds of megabytes.
#[test]
fn who_is_told_to_end_leaves_no_file_of_the_paper_s() {
    if !is_installed("vsftpd") && !std::path::Path::new("/usr/sbin/vsftpd").exists() {
        println!("not tested here: vsftpd is not installed");
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let mut bench = command_with_signals(HEEDING, "bench paper-sovia --part table1 --quick")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let pid = bench.id();
        let folders = || {
            let parents = [std::path::Path::new("/dev/shm"), &std::env::temp_dir()];
            parents.map(|parent| ours(parent, "paper", pid)).concat()
        };
        let has_file = || {
            let folders = folders();
            let files = folders.iter().filter_map(|folder| folder.read_dir().ok());
            files.flatten().next().is_some()
        };
        while !has_file() {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&bench), signal).expect("it is still there");
        bench.wait().expect("it is ours");
        assert_eq!(folders(), [] as [std::path::PathBuf; 0], "{signal:?}");
    }
}

/// Somebody else may have made what a process of ours will look for, and link from there.
#[test]
fn its_folder_is_nobody_else_s() {
    let folder = Folder::new("guessed");
    let precious = folder.file("precious", "kept");
    let bench = command("bench --quick --only connects");
    // The child knows its own number before it is the program.
    let output = Command::new("sh")
        .args(["-c", GUESS, "sh"])
        .arg(&precious)
        .arg(bench.get_program())
        .args(bench.get_args())
        .current_dir(&folder.0)
        // As good as any other.
        .env("TMPDIR", ".")
        .output()
        .expect("sh");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert_eq!(std::fs::read(&precious).expect("it is there"), b"kept");
}

/// Goes on as the program, under the same number.
const GUESS: &str = "file=$1; shift; mkdir sovia-bench-$$ && ln -s \"$file\" sovia-bench-$$/upgrades-0 && exec \"$@\"";

#[test]
fn a_folder_may_be_called_anything() {
    if !is_installed("wrk")
        || !["/usr/sbin/nginx", "/usr/bin/nginx"]
            .iter()
            .any(|path| std::path::Path::new(path).exists())
    {
        println!("not tested here: nginx and wrk are not installed");
        return;
    }
    let folder = Folder::new("a space; and {more}");
    let output = command("bench --quick --only nginx")
        .env("TMPDIR", &folder.0)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stdout));
}

const NOBODY: u32 = 65_534;
/// Ends a test that would wait for ever.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn what_there_is_to_measure_is_listed() {
    let list = stdout_of("bench --list");
    let names = list.lines().filter_map(|line| line.split(' ').next());
    for name in ["latency-epoll", "pgbench", "short", "stat"] {
        assert!(names.clone().any(|listed| listed == name), "{name}: {list}");
    }
    // What each measures is told where `--help` says so.
    let page = include_str!("../../../docs/bench.md");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
