use std::fs;

use rustix::process::Signal;

use super::super::registry::Need;
use super::{Recipe, Stage};
use crate::error::{Context, Result};

/// One worker, a file of 1 kB, and `wrk` with 50 connections that stay.
pub(super) const RECIPE: Recipe = Recipe {
    needs: &[
        Need {
            program: "nginx",
            package: "nginx-light",
        },
        Need {
            program: "wrk",
            package: "wrk",
        },
    ],
    not_unix: Some("wrk"),
    user: None,
    stop: Signal::TERM,
    prepare,
    server: |stage| {
        let mut command = stage.command("nginx");
        command
            .arg("-p")
            .arg(&stage.folder)
            .args(["-c", "nginx.conf"]);
        command.args(["-e", "error.log"]);
        command
    },
    fill: |_| None,
    client: |stage, seconds| {
        let mut command = stage.command("wrk");
        command
            .args(["-t", "1", "-c", "50", "-d", &format!("{seconds}s")])
            .arg(format!("http://127.0.0.1:{}/file", stage.port));
        command
    },
    rate: |said| {
        let rate = said
            .lines()
            .find_map(|line| line.trim().strip_prefix("Requests/sec:"))?;
        rate.trim().parse().ok()
    },
};

fn prepare(stage: &Stage) -> Result<()> {
    // Workers of root's nginx are somebody else otherwise, who may not even read the folder.
    let user = if rustix::process::geteuid().is_root() {
        "user root;\n"
    } else {
        ""
    };
    // Paths are relative to the folder that `-p` names, whose own name may hold what means something here.
    let configuration = format!(
        "{user}daemon off;\nworker_processes 1;\npid nginx.pid;\nerror_log error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  keepalive_requests 1000000000;\n\
         client_body_temp_path body;\n  proxy_temp_path proxy;\n  fastcgi_temp_path fastcgi;\n\
         uwsgi_temp_path uwsgi;\n  scgi_temp_path scgi;\n\
         server {{ listen 127.0.0.1:{}; root .; }}\n}}\n",
        stage.port
    );
    fs::write(stage.folder.join("nginx.conf"), configuration).context("nginx's configuration")?;
    fs::write(stage.folder.join("file"), [b'x'; 1024]).context("a file for nginx")
}
