use rustix::process::Signal;

use super::super::registry::Need;
use super::{Recipe, Stage};

/// A cluster of its own without fsync, and `pgbench`'s select-only script with one client.
pub(super) const RECIPE: Recipe = Recipe {
    needs: &[
        Need {
            program: "postgres",
            package: "postgresql",
        },
        Need {
            program: "initdb",
            package: "postgresql",
        },
        Need {
            program: "pgbench",
            package: "postgresql",
        },
    ],
    not_unix: None,
    user: Some("postgres"),
    // Its fast shutdown, which leaves no memory behind.
    stop: Signal::INT,
    prepare: |stage| {
        let mut command = stage.command("initdb");
        command.args(["-A", "trust", "-U", USER, "--no-sync", "-D", DATA]);
        stage.run(command)
    },
    server: |stage| {
        let mut command = stage.command("postgres");
        command
            .args(["-D", DATA, "-p", &stage.port.to_string()])
            .args(["-c", "fsync=off", "-c", "autovacuum=off"]);
        match stage.unix {
            true => command.args(["-h", "", "-k"]).arg(&stage.folder),
            false => command.args(["-h", "127.0.0.1", "-k", ""]),
        };
        command
    },
    fill: |stage| {
        let mut command = pgbench(stage);
        command.args(["-i", "-q"]);
        Some(command)
    },
    client: |stage, seconds| {
        let mut command = pgbench(stage);
        command.args(["-S", "-n", "-c", "1", "-j", "1", "-T", &seconds.to_string()]);
        command
    },
    rate: |said| {
        let rate = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
        rate.split_whitespace().next()?.parse().ok()
    },
};

fn pgbench(stage: &Stage) -> std::process::Command {
    let mut command = stage.command("pgbench");
    match stage.unix {
        true => command.arg("-h").arg(&stage.folder),
        false => command.args(["-h", "127.0.0.1"]),
    };
    command
        .args(["-p", &stage.port.to_string(), "-U", USER])
        .env("PGDATABASE", USER);
    command
}

const USER: &str = "postgres";
const DATA: &str = "data";
