//! Two programs that talk over one connection for as long as a test looks at it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::folder::Folder;

/// One of the two; it ends when this is dropped.
pub(crate) struct Talker {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Talker {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it writes.
    pub(crate) fn says(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("UTF-8");
        line.trim_end().to_owned()
    }

    /// Has the client exchange so many messages of 64 bytes.
    pub(crate) fn exchange(&mut self, times: u32) {
        let stdin = self.stdin.as_mut().expect("not ended");
        writeln!(stdin, "{times}").expect("it reads");
        assert_eq!(self.says(), "exchanged");
    }

    /// Has the client send what can be sent to a server that does not read: how many bytes that is.
    pub(crate) fn fill(&mut self) -> usize {
        let stdin = self.stdin.as_mut().expect("not ended");
        writeln!(stdin, "-1").expect("it reads");
        self.says().parse().expect("a number")
    }

    /// Ends it; what it wrote to standard error.
    pub(crate) fn end(mut self) -> String {
        drop(self.stdin.take());
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("UTF-8");
        assert!(self.child.wait().expect("it is ours").success(), "{said}");
        said
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The programs, compiled.
pub(crate) struct Talk {
    pub(crate) folder: Folder,
    pub(crate) program: PathBuf,
}

impl Talk {
    pub(crate) fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let program = folder.program("talk", SOURCE, &[]);
        Self { folder, program }
    }

    /// A server and a client, both under sovia, with this configuration, after so many exchanges.
    pub(crate) fn both(&self, config: &Path, exchanges: u32) -> [Talker; 2] {
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sovia"));
            command.arg("run").arg("--config").arg(config);
            command.arg(&self.program);
            command
        };
        self.pair(run().arg("server"), run().arg("client"), exchanges)
    }

    /// A server and a client by commands that want a port as their last argument, after so many exchanges.
    pub(crate) fn pair(
        &self,
        server: &mut Command,
        client: &mut Command,
        exchanges: u32,
    ) -> [Talker; 2] {
        let mut server = Talker::start(server);
        let port = server.says();
        let mut client = Talker::start(client.arg(&port));
        client.exchange(exchanges);
        [server, client]
    }
}

const SOURCE: &str = r#"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[64];

static int all(ssize_t (*move)(int, void *, size_t, int), int fd) {
    for (size_t done = 0; done < sizeof buffer;) {
        ssize_t n = move(fd, buffer + done, sizeof buffer - done, 0);
        if (n <= 0) return 0;
        done += (size_t)n;
    }
    return 1;
}

static ssize_t out(int fd, void *from, size_t n, int flags) { return send(fd, from, n, flags); }

static int asked(const char *name, int otherwise) {
    const char *word = getenv(name);
    return word ? atoi(word) : otherwise;
}

/* Of SOL_SOVIA. */
static int convert(int fd) {
    int mode = asked("TALK_MODE", 0), on = 1;
    return !mode || !setsockopt(fd, 0x534f, mode, &on, sizeof on);
}

/* Until something has come, in the call that TALK_WAIT names. */
static int waits(int fd) {
    static int set = -1;
    const char *way = getenv("TALK_WAIT");
    if (!way) return 1;
    if (!strcmp(way, "poll")) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        return poll(&one, 1, -1) == 1;
    }
    if (!strcmp(way, "several")) {
        static int twin = -1;
        if (twin < 0) twin = dup(fd);
        struct pollfd two[] = {{.fd = fd, .events = POLLIN}, {.fd = twin, .events = POLLIN}};
        return poll(two, 2, -1) > 0;
    }
    if (!strcmp(way, "select")) {
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(fd, &ready);
        return select(fd + 1, &ready, 0, 0, 0) == 1;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (set < 0) {
        set = epoll_create1(0);
        if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) return 0;
    }
    return epoll_wait(set, &event, 1, -1) == 1;
}

/* By TALK_LATER without waiting in the call. */
static int connects(int fd, struct sockaddr_in *at) {
    if (!asked("TALK_LATER", 0)) return !connect(fd, (void *)at, sizeof *at);
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    connect(fd, (void *)at, sizeof *at);
    return poll(&one, 1, -1) == 1 && !fcntl(fd, F_SETFL, 0);
}

static long fill(int fd) {
    long sent = 0;
    for (ssize_t n; (n = send(fd, buffer, sizeof buffer, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) sent += n;
    return sent;
}

int main(int count, char **words) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, asked("TALK_TYPE", SOCK_STREAM), 0);
    if (!strcmp(words[1], "server")) {
        int on = 1, reads = asked("TALK_READS", -1);
        at.sin_port = htons((unsigned short)asked("TALK_PORT", 0));
        if (at.sin_port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, (void *)&at, len) || listen(fd, 1) || getsockname(fd, (void *)&at, &len)) return 1;
        printf("%d\n", ntohs(at.sin_port));
        fflush(stdout);
        int peer = accept(fd, 0, 0);
        if (!convert(peer)) return 4;
        while (reads-- && waits(peer) && all(recv, peer) && all(out, peer)) {}
        while (reads == -1 && getchar() != EOF) {}
        return 0;
    }
    at.sin_port = htons((unsigned short)atoi(words[count - 1]));
    if (!connects(fd, &at) || !convert(fd)) return 2;
    for (int times; scanf("%d", &times) == 1;) {
        if (times < 0) printf("%ld\n", fill(fd));
        for (int left = times; left > 0; left--)
            if (!all(out, fd) || !all(recv, fd)) return 3;
        if (times >= 0) puts("exchanged");
        fflush(stdout);
    }
    return 0;
}
"#;
