use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::{command, sovia, stdout_of, text};

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

#[test]
fn misuse_is_refused_with_status_2() {
    for arguments in [
        "bench --only marathon",
        "bench --only stat sockets",
        "bench sockets --row marathon",
        "bench sockets --json",
        "demo --rows 7",
        "plain",
        "plain echo-client somewhere 64",
    ] {
        let output = sovia(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
    let output = sovia("demo --json /nowhere/at.json");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/at.json"));
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
    let root = rustix::process::geteuid().is_root();
    let places: &[&str] = if root { &["", "--namespaces"] } else { &[""] };
    if !root {
        println!("not tested here: --namespaces, which takes root");
    }
    for place in places {
        let output = sovia(&format!(
            "bench paper-iwarp --quick --way tcp,extended,crc-markers {place}"
        ));
        let said = text(&output.stdout);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if cpus < 2 {
            println!("not tested here: it takes two CPUs");
            return;
        }
        assert!(output.status.success(), "{place}: {}", text(&output.stderr));
        for row in [
            "Figure 5(a)",
            "Figure 6(b)",
            "64k stream, extended sockets / TCP",
        ] {
            assert!(said.contains(row), "{place}: {row} in {said}");
        }
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
