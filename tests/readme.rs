//! The README, executed as printed, and its links.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The shell commands of a section, one block after the other.
fn blocks(text: &str, section: &str) -> Vec<String> {
    let body = text.split("\n## ").find(|part| part.starts_with(section)).expect("the section");
    body.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// A server, ended with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn a_store_of_your_own_is_made_as_printed() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // `counterpart` as an installation would provide it.
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_counterpart"), programs.join("counterpart")).unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    // Another program may listen on the usual port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let shell = |commands: &str| {
        let path = std::env::join_paths([&programs, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(&work).env("PATH", path);
        shell.env_remove("DATABASE_URL").env("COUNTERPART_LISTEN", format!("127.0.0.1:{port}"));
        shell
    };
    let mut served = None;
    let mut said = Vec::new();
    for block in blocks(&readme, "A store of your own") {
        if block.starts_with("cargo install") {
            continue;
        }
        if block.trim() == "counterpart serve" {
            let mut child = shell("exec counterpart serve").stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            served = Some(Served(child));
            assert!(line.starts_with("listening on"), "{line}");
            continue;
        }
        let output = shell(&block.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"))).output().unwrap();
        let (printed, complaint) =
            (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "{block}\n{printed}{complaint}");
        said.push(printed);
    }
    assert!(served.is_some(), "the section serves the store");
    let all = said.concat();
    for expected in ["/settings#link=", "imported 13 records", "\"ticketNumber\"", "message.received", "whsec_"] {
        assert!(all.contains(expected), "`{expected}` is not in what was printed:\n{all}");
    }
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let root = Path::new(ROOT);
    let mut files: Vec<_> =
        ["README.md", "CHANGELOG.md", "SECURITY.md", "features.md", "benches/README.md"].map(|name| root.join(name)).into();
    files.extend(root.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // A fence of code stands on a line of its own.
        for fence in text.lines().filter(|line| line.contains("```")) {
            let language = fence.trim_start().strip_prefix("```");
            assert!(language.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{}: {fence}", file.display());
        }
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if !target.contains("://") && !path.is_empty() {
                assert!(file.parent().unwrap().join(path).exists(), "{}: `{target}` leads nowhere", file.display());
            }
        }
    }
    assert!(fs::read_to_string(root.join("README.md")).unwrap().lines().count() <= 150);
}
