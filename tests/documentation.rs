//! Tests of the documentation: runs the commands of the README's section "A store of your own" as printed, and checks that the links in
//! README.md, docs and other documents lead to files.

#[allow(dead_code, reason = "the tests of the settings page use the rest")]
#[path = "settings_page/browser.rs"]
mod browser;
#[path = "contract_replay/markdown_code_blocks.rs"]
mod markdown_code_blocks;

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use browser::Browser;
use hmac::{Hmac, KeyInit, Mac};
use markdown_code_blocks::blocks;
use sha2::Sha256;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A running server, which is killed when this value is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A received webhook delivery: its headers and its body.
type Delivery = (HashMap<String, String>, String);

/// Starts a webhook endpoint that accepts deliveries until the process ends. Returns its address, and a channel with the deliveries.
fn endpoint() -> (String, Receiver<Delivery>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    let (taken, deliveries) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut headers = HashMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.trim_end().split_once(": ") {
                    Some((name, value)) => _ = headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                    None if line.trim_end().is_empty() => break,
                    None => {}
                }
            }
            let mut body = vec![0; headers["content-length"].parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            _ = taken.send((headers, String::from_utf8(body).unwrap()));
        }
    });
    (url, deliveries)
}

/// Whether the signature of a delivery was created with this secret, according to Standard Webhooks.
fn is_signed((headers, body): &Delivery, secret: &str) -> bool {
    let key = BASE64.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.{body}", headers["webhook-id"], headers["webhook-timestamp"]).as_bytes());
    headers["webhook-signature"] == format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
}

#[test]
fn the_readme_commands_that_set_up_a_store_work_as_printed() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Puts a link to the binary into a folder on the path, so that the commands find `counterpart` as after an installation.
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_counterpart"), programs.join("counterpart")).unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    // The server uses a free port, since another program may listen on the default port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let shell = |commands: &str| {
        let path = std::env::join_paths([&programs, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(&work).env("PATH", path);
        shell.env_remove("DATABASE_URL").env("COUNTERPART_LISTEN", format!("127.0.0.1:{port}"));
        // Permits webhook deliveries to this machine, where the test's endpoint is.
        shell.env("COUNTERPART_ALLOW_PRIVATE_TARGETS", "true");
        shell
    };
    let (hooks, deliveries) = endpoint();
    let here = |block: &str| block.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}")).replace("https://example.com/hooks", &hooks);
    let ok = |block: &str| {
        let output = shell(&here(block)).output().unwrap();
        let (printed, complaint) =
            (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "{block}\n{printed}{complaint}");
        printed
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
        said.push(ok(&block));
    }
    assert!(served.is_some(), "the section serves the store");
    let all = said.concat();
    for expected in ["/settings#link=", "imported 13 records", "\"ticketNumber\"", "message.received", "whsec_"] {
        assert!(all.contains(expected), "the output lacks `{expected}`:\n{all}");
    }

    // Receives another message of the customer. Its event must reach the webhook endpoint.
    let blocks = blocks(&readme, "A store of your own");
    let receive = blocks.iter().find(|block| block.contains("message receive")).unwrap();
    ok(&receive.replace("\"m-1\"", "\"m-2\""));
    let secret = all.lines().find(|line| line.starts_with("whsec_")).unwrap();
    let delivery = deliveries.recv_timeout(Duration::from_secs(30)).expect("a delivery");
    assert!(delivery.1.contains("\"message.received\"") && is_signed(&delivery, secret), "{delivery:?}");

    let link = all.lines().find(|line| line.contains("/settings#link=")).unwrap();
    let browser = Browser::open();
    browser.go(&here(link));
    assert!(browser.text("//*[@id='who']").contains("owner, until "), "the owner's settings");
    browser.sees("//h2[.='API keys']");
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let root = Path::new(ROOT);
    let mut files: Vec<_> =
        ["README.md", "CHANGELOG.md", "SECURITY.md", "features.md", "benches/README.md"].map(|name| root.join(name)).into();
    files.extend(root.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Every fence of a code block (three backticks) must be on a line of its own, with nothing but the language after it.
        for fence in text.lines().filter(|line| line.contains("```")) {
            let language = fence.trim_start().strip_prefix("```");
            assert!(language.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{}: {fence}", file.display());
        }
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if !target.contains("://") && !path.is_empty() {
                assert!(file.parent().unwrap().join(path).exists(), "{}: the link `{target}` names no file", file.display());
            }
        }
    }
    assert!(fs::read_to_string(root.join("README.md")).unwrap().lines().count() <= 150);
}
