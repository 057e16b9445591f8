//! What measures beside TCP must itself be without `libsovia.so`, whose business it is to stand in front of TCP.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;

use crate::config::RULES;
use crate::error::{Context, Error, Result};
use crate::process::myself;
use crate::run::{PRELOAD, library};

/// Starts this program anew if the library is preloaded, without it and what it would be told; what this one starts inherits that.
pub(crate) fn from_the_library() -> Result<()> {
    let list = env::var_os(PRELOAD).unwrap_or_default();
    let told = [RULES, TRACE].map(|name| env::var_os(name).is_some());
    if library::is_in(list.as_encoded_bytes()) || told.contains(&true) {
        let mut command = myself();
        let mut arguments = env::args_os();
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        command.args(arguments).env_remove(RULES).env_remove(TRACE);
        match library::without(&list) {
            Some(others) => command.env(PRELOAD, others),
            None => command.env_remove(PRELOAD),
        };
        return Err(command.exec()).context("exec");
    }
    // /etc/ld.so.preload gives it to all.
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let mut files = maps
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.rsplit(|&byte| byte == b' ').next());
    if files.any(library::is_in) {
        return Err(Error::Misuse(
            "libsovia.so is in front of this program, and so of all that is to be measured over TCP"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Where a program under sovia notes which connections have left TCP.
pub(crate) const TRACE: &str = "SOVIA_TRACE_UPGRADE";
